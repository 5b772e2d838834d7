// Model FLOPs against the MFU that Hagemann et al. logged beside the step time of each run.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "layline/runs/run_record.h"
#include "layline/spec/registry.h"

namespace layline::spec::test {
namespace {

const char* model_of(const std::string& name) {
  if (name == "Llama-13B") return "llama-13b";
  if (name == "Llama-30B") return "llama-30b";
  return name == "Llama-65B" ? "llama-65b" : "";
}

// (6N + 12·L·n·d·s) · tokens a second, over what the GPUs could do; relative to what was logged.
double relative_error(const runs::RunRecord& run) {
  const double tokens = static_cast<double>(*run.global_batch_sequences * *run.seq_len);
  const double peak =
      get_gpu(run.hardware).peak_flops_per_second(Precision::kBf16) * static_cast<double>(*run.gpus_total);
  const double flops = get_model(model_of(run.model)).flops_per_token(*run.seq_len) * tokens;
  return flops / (*run.step_time_s * peak) / *run.mfu - 1;
}

std::string trial_of(const runs::RunRecord& run) {
  return run.source_location.substr(run.source_location.rfind(' ') + 1);
}

// Trials whose logged MFU and step time disagree with each other: the MFU is of another step than the time.
const std::map<std::string, double> kDisagreeing = {
    {"131866", -0.0175}, {"131868", -0.0026}, {"131873", -0.0022}, {"97346", -0.0041},  {"103674", -0.0308},
    {"132201", -0.0062}, {"132270", -0.0061}, {"132415", -0.0045}, {"132425", -0.0048}, {"132275", -0.0048}};

TEST(ModelFlops, AreThoseOfEveryPublishedRun) {
  const runs::RunTable table = runs::read_runs(LAYLINE_SOURCE_DIR "/data/published/hagemann2024_a100.csv");
  int num_timed = 0;
  std::map<std::string, double> disagreeing;
  for (const runs::RunRecord& run : table.records) {
    if (!run.step_time_s) continue;
    ASSERT_TRUE(run.mfu) << run.line;
    ++num_timed;
    const double error = relative_error(run);
    if (kDisagreeing.count(trial_of(run)) > 0) {
      disagreeing[trial_of(run)] = error;
    } else {
      EXPECT_LT(std::abs(error), 0.002) << run.source_location;
    }
  }
  EXPECT_EQ(num_timed, 346);
  EXPECT_EQ(disagreeing.size(), kDisagreeing.size());
  for (const auto& [trial, error] : disagreeing) {
    EXPECT_GT(std::abs(error), 0.002) << trial;
    EXPECT_LT(std::abs(error), 0.032) << trial;
    EXPECT_NEAR(error, kDisagreeing.at(trial), 1e-4) << trial;
  }
}

// The records' own size columns mean the same models.
TEST(ModelFlops, OfPublishedRunsAreOfTheShippedModels) {
  for (const runs::RunRecord& run :
       runs::read_runs(LAYLINE_SOURCE_DIR "/data/published/hagemann2024_a100.csv").records) {
    const Model model = get_model(model_of(run.model));
    EXPECT_EQ(model.num_layers, *run.layers);
    EXPECT_EQ(model.hidden, *run.hidden);
    EXPECT_EQ(model.num_heads, *run.heads);
    EXPECT_EQ(model.num_kv_heads, *run.kv_heads);
    EXPECT_EQ(model.ffn_hidden, *run.ffn_hidden);
    EXPECT_EQ(model.vocab, *run.vocab);
  }
}

}  // namespace
}  // namespace layline::spec::test
