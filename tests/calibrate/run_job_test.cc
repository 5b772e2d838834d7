// What the columns of a run record mean as a job and a layout.
#include "layline/calibrate/run_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "layline/runs/run_columns.h"
#include "tests/calibrate/synthetic.h"

namespace layline::calibrate {
namespace {

using spec::AttentionKernel;
using testing::HasSubstr;

// A complete record of a layout with two pipeline stages.
runs::RunRecord good_record(const std::string& engine = "aleph-scaling") {
  const spec::Job job = layline::test::make_job({.engine = engine});
  return test::record_of(job, layline::test::layout_of(job, "tp2 pp2 mb1"), "s");
}

layout::Layout layout_of(const runs::RunRecord& record) {
  const RunJobOrReason result = job_of(record, "");
  EXPECT_TRUE(result.run) << result.reason;
  return result.run ? result.run->layout : layout::Layout{};
}

TEST(RunJob, HasTheRecordsSizes) {
  const RunJobOrReason result = job_of(good_record(), "");
  ASSERT_TRUE(result.run) << result.reason;
  const spec::Job& job = result.run->job;
  EXPECT_EQ(job.model.num_parameters(), spec::get_model("llama-13b").num_parameters());
  EXPECT_EQ(job.cluster.name, "a100-80gb");
  EXPECT_EQ(job.engine.name, "aleph-scaling");
  EXPECT_EQ(job.num_gpus, 64);
  EXPECT_EQ(job.global_batch, 2048);
  EXPECT_EQ(job.sequence_length, 2048);
  EXPECT_EQ(job.precision, spec::Precision::kBf16);
  EXPECT_FALSE(job.calibration.is_fitted());
  const layout::Layout& layout = result.run->layout;
  EXPECT_EQ(layout.dp * 100 + layout.tp * 10 + layout.pp, 1622);
  EXPECT_EQ(layout.zero, 1);
  EXPECT_EQ(layout.split, job.engine.default_split);
}

TEST(RunJob, KernelsAreReadAsTheirSourcesSpellThem) {
  const std::pair<const char*, AttentionKernel> rows[] = {
      {"flash_attention2", AttentionKernel::kFlash2},
      {"flash_attention_triton", AttentionKernel::kFlash2},
      {"TransformerEngine/cuDNN fused attention", AttentionKernel::kFlash2},
      {"TransformerEngine", AttentionKernel::kFlash2},
      {"cuDNN", AttentionKernel::kFlash2},
      {"TE fused", AttentionKernel::kFlash2},
      {"TE fused backend=flash", AttentionKernel::kFlash2},
      {"TE fused backend=unfused", AttentionKernel::kFlash2},
      {"flash_attention1", AttentionKernel::kFlash1},
      {"fused_softmax", AttentionKernel::kFusedSoftmax},
      {"unfused (fused scaled-masked-softmax)", AttentionKernel::kFusedSoftmax},
      {"unfused (fused softmax)", AttentionKernel::kFusedSoftmax},
      {"unfused (pre-FlashAttention, fused scaled-masked-softmax)", AttentionKernel::kFusedSoftmax},
      {"unfused (pre-FlashAttention)", AttentionKernel::kUnfused},
      {"unfused", AttentionKernel::kUnfused},
  };
  for (const auto& [text, kernel] : rows) {
    runs::RunRecord record = good_record();
    record.attention_kernel = text;
    EXPECT_EQ(layout_of(record).attention, kernel) << text;
  }
}

TEST(RunJob, EmptyKernelsAreTheEnginesOwn) {
  for (const char* name : {"aleph-scaling", "megatron-2021", "megatron-core", "megatron-deepspeed", "nanotron"}) {
    const spec::Engine engine = spec::get_engine(name);
    runs::RunRecord record = good_record();
    record.engine = name;
    const layout::Layout layout = layout_of(record);
    EXPECT_EQ(layout.attention, engine.default_attention) << name;
    EXPECT_EQ(layout.norm, engine.default_norm) << name;
    EXPECT_EQ(layout.split, engine.default_split) << name;
  }
  runs::RunRecord record = good_record();
  record.norm_kernel = "unfused";
  EXPECT_EQ(layout_of(record).norm, spec::NormKernel::kUnfused);
  record.norm_kernel = "fused";
  EXPECT_EQ(layout_of(record).norm, spec::NormKernel::kFused);
}

TEST(RunJob, ColumnsOfTheLayoutMeanItsAxes) {
  struct Row {
    const char* column;
    void (*set)(runs::RunRecord&);
    void (*expect)(const layout::Layout&);
  };
  const Row rows[] = {
      {"recompute", [](auto& r) { r.recompute = "full"; },
       [](const auto& l) { EXPECT_EQ(l.checkpointing, spec::Checkpointing::kFull); }},
      {"recompute", [](auto& r) { r.recompute = "selective"; },
       [](const auto& l) { EXPECT_EQ(l.checkpointing, spec::Checkpointing::kSelective); }},
      {"recompute", [](auto& r) { r.recompute = ""; },
       [](const auto& l) { EXPECT_EQ(l.checkpointing, spec::Checkpointing::kNone); }},
      {"vpp", [](auto& r) { r.vpp = 4; },
       [](const auto& l) {
         EXPECT_EQ(l.vp, 4);
         EXPECT_EQ(l.schedule, spec::ScheduleKind::kInterleaved);
       }},
      {"vpp", [](auto& r) { r.vpp = 1; }, [](const auto& l) { EXPECT_EQ(l.schedule, spec::ScheduleKind::kOneFOneB); }},
      {"sp", [](auto& r) { r.sp = true; }, [](const auto& l) { EXPECT_TRUE(l.sp); }},
      {"sp at tp1", [](auto& r) { r.sp = true, r.tp = 1, r.dp = 32; }, [](const auto& l) { EXPECT_FALSE(l.sp); }},
      {"zero_stage", [](auto& r) { r.zero_stage = 3; }, [](const auto& l) { EXPECT_EQ(l.zero, 3); }},
      {"zero_stage", [](auto& r) { r.zero_stage.reset(); }, [](const auto& l) { EXPECT_EQ(l.zero, 1); }},
      {"cp", [](auto& r) { r.cp = 2, r.dp = 8; }, [](const auto& l) { EXPECT_EQ(l.cp * l.dp, 16); }},
      {"ep", [](auto& r) { r.ep = 4; }, [](const auto& l) { EXPECT_EQ(l.ep, 4); }},
      {"dp", [](auto& r) { r.dp.reset(); }, [](const auto& l) { EXPECT_EQ(l.dp, 16); }},
      {"dp with cp", [](auto& r) { r.dp.reset(), r.cp = 4; }, [](const auto& l) { EXPECT_EQ(l.dp, 4); }},
      {"gpus_total", [](auto& r) { r.gpus_total.reset(); }, [](const auto& l) { EXPECT_EQ(l.world_size(), 64); }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.column);
    runs::RunRecord record = good_record();
    row.set(record);
    row.expect(layout_of(record));
  }
}

TEST(RunJob, SequenceParallelismIsWhatSomeEnginesAlwaysDo) {
  runs::RunRecord record = good_record();
  record.engine = "nanotron";
  EXPECT_TRUE(layout_of(record).sp);
  record.sp = false;
  EXPECT_TRUE(layout_of(record).sp);
}

TEST(RunJob, ModelColumnsMeanItsParts) {
  runs::RunRecord record = good_record("megatron-core");
  record.kv_heads.reset();
  EXPECT_EQ(job_of(record, "").run->job.model.num_kv_heads, 40);
  record.ffn_hidden.reset();
  EXPECT_EQ(job_of(record, "").run->job.model.ffn_hidden, 4 * 5120);
  record.tie_embeddings = true;
  EXPECT_TRUE(job_of(record, "").run->job.model.tied_embeddings);
  record.mlp = "gelu";
  const spec::Model gpt = job_of(record, "").run->job.model;
  EXPECT_EQ(gpt.num_mlp_matrices(), 2);
  EXPECT_EQ(gpt.norm, spec::Norm::kLayerNorm);
  EXPECT_EQ(gpt.max_sequence_length, 2048);
  EXPECT_TRUE(gpt.linear_bias);
  record.mlp = "squared-relu";
  EXPECT_EQ(job_of(record, "").run->job.model.mlp, spec::Mlp::kSquaredRelu);
}

TEST(RunJob, PrecisionIsReadFromItsText) {
  struct Row {
    const char* hardware;
    const char* text;
    spec::Precision precision;
  };
  const Row rows[] = {
      {"H100-80GB SXM", "fp8", spec::Precision::kFp8},
      {"A100-80GB SXM", "bf16", spec::Precision::kBf16},
      {"A100-80GB SXM", "fp16", spec::Precision::kFp16},
      {"A100-80GB SXM", "", spec::Precision::kBf16},
      {"V100-32GB", "", spec::Precision::kFp16},
      {"V100-32GB", "fp16", spec::Precision::kFp16},
      {"A100-80GB SXM", "bf16/fp16", spec::Precision::kFp16},
  };
  for (const Row& row : rows) {
    runs::RunRecord record = good_record("megatron-core");
    record.hardware = row.hardware;
    record.precision = row.text;
    const RunJobOrReason result = job_of(record, "");
    ASSERT_TRUE(result.run) << row.hardware << " " << row.text << ": " << result.reason;
    EXPECT_EQ(result.run->job.precision, row.precision) << row.hardware << " " << row.text;
  }
}

TEST(RunJob, AnEngineThatIsGivenReplacesTheColumn) {
  runs::RunRecord record = good_record();
  EXPECT_EQ(job_of(record, "megatron-core").run->job.engine.name, "megatron-core");
  record.engine = "";
  EXPECT_EQ(job_of(record, "megatron-core").run->engine_name, "megatron-core");
}

TEST(RunJob, RecordsThatCannotBePricedComeBackWithTheReason) {
  struct Row {
    void (*spoil)(runs::RunRecord&);
    const char* reason;
  };
  const Row rows[] = {
      {[](auto& r) { r.layers.reset(); }, "no layers in the record"},
      {[](auto& r) { r.hidden.reset(); }, "no hidden in the record"},
      {[](auto& r) { r.heads.reset(); }, "no heads in the record"},
      {[](auto& r) { r.vocab.reset(); }, "no vocab in the record"},
      {[](auto& r) { r.seq_len.reset(); }, "no seq_len in the record"},
      {[](auto& r) { r.global_batch_sequences.reset(); }, "no global_batch_sequences in the record"},
      {[](auto& r) { r.micro_batch_size.reset(); }, "no micro_batch_size in the record"},
      {[](auto& r) { r.tp.reset(); }, "no tp in the record"},
      {[](auto& r) { r.pp.reset(); }, "no pp in the record"},
      {[](auto& r) { r.gpus_total.reset(), r.dp.reset(); }, "no gpus_total in the record"},
      {[](auto& r) { r.gpus_total.reset(), r.dp = r.tp = int64_t{1} << 40; }, "no gpus_total in the record"},
      {[](auto& r) { r.engine = ""; }, "no engine in the record"},
      {[](auto& r) { r.engine = "megatron-cor"; }, "did you mean \"megatron-core\"?"},
      {[](auto& r) { r.hardware = "A100-80GB SMX"; }, "did you mean"},
      {[](auto& r) { r.hardware = ""; }, "no GPU \"\""},
      {[](auto& r) { r.kv_heads = 7; }, "num_kv_heads 7 does not divide num_heads 40"},
      {[](auto& r) { r.vocab = int64_t{1} << 40; }, "vocab is"},
      {[](auto& r) { r.gpus_total = 12, r.dp.reset(); }, "12 GPUs are neither less than a node nor whole nodes"},
      {[](auto& r) { r.precision = "fp8"; }, "has no fp8"},
  };
  for (const Row& row : rows) {
    runs::RunRecord record = good_record();
    row.spoil(record);
    const RunJobOrReason result = job_of(record, "");
    EXPECT_FALSE(result.run) << row.reason;
    EXPECT_THAT(result.reason, HasSubstr(row.reason));
  }
}

// Whatever numbers a file may hold, and any of its columns left out.
RC_GTEST_PROP(RunJob, NeverThrowsAndGivesARunOrAReason, ()) {
  runs::RunRecord record = good_record();
  for (const runs::RunColumn& column : runs::run_column_table()) {
    if (const auto* whole = std::get_if<runs::WholeNumberColumn>(&column.kind)) {
      if (*rc::gen::inRange(0, 4) != 0) continue;
      record.*(whole->member) = *rc::gen::element<std::optional<int64_t>>(std::nullopt, whole->lower, 3, 1000,
                                                                          int64_t{1} << 31, whole->upper);
    }
  }
  const RunJobOrReason result = job_of(record, "");
  RC_ASSERT(result.run.has_value() == result.reason.empty());
  if (result.run) layout::legality(result.run->layout, result.run->job);
}

}  // namespace
}  // namespace layline::calibrate
