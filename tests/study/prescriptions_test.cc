#include "layline/study/prescriptions.h"

#include <gtest/gtest.h>

#include <set>

#include "layline/base/error.h"
#include "layline/search/search.h"
#include "tests/study/hand_made.h"

namespace layline::study {
namespace {

std::vector<std::string> texts_of(const char* rule, const spec::Job& job) {
  cost::Pricer pricer(job);
  std::vector<std::string> texts;
  for (const Prescription& p : find_rule(rule).prescribe(job, pricer)) texts.push_back(layout::to_text(p.fix));
  return texts;
}

TEST(Prescriptions, FollowMegatronsTable) {
  struct Row {
    const char* model;
    int64_t gpus;
    const char* want;
  };
  for (const Row& row : {Row{"llama-3.1-8b", 8, "tp1 pp1 cp1"}, Row{"llama-13b", 8, "tp2 pp1 cp1"},
                         Row{"llama-3.1-70b", 64, "tp4 pp4 cp1"}, Row{"llama-3.1-405b", 128, "tp8 pp8 cp1"}}) {
    const spec::Job job = job_of(row.model, row.gpus, "h100-80gb", "megatron-core", 128, 8192);
    EXPECT_EQ(find_rule("megatron-table").why_not(job), "");
    EXPECT_EQ(texts_of("megatron-table", job), std::vector<std::string>{row.want});
  }
  const spec::Job longer = job_of("llama-3.1-405b", 128, "h100-80gb", "megatron-core", 128, 131072);
  EXPECT_EQ(texts_of("megatron-table", longer), std::vector<std::string>{"tp8 pp8 cp2"});
}

TEST(Prescriptions, SayNothingWhereMegatronsTableHasNoSuchJob) {
  EXPECT_NE(find_rule("megatron-table").why_not(job_of("llama-30b", 64, "h100-80gb", "megatron-core", 128, 2048)), "");
  EXPECT_NE(find_rule("megatron-table").why_not(job_of("llama-3.1-70b", 8, "h100-80gb", "megatron-core", 128, 2048)),
            "");
}

TEST(Prescriptions, BigSciencesPipelineGrowsWithTheModel) {
  // 18 bytes a parameter in 75 % of 80 GB: 3.4 billion parameters a GPU.
  EXPECT_EQ(texts_of("bigscience", job_of("llama-3.2-1b", 64, "a100-80gb", "megatron-core", 128, 2048)).front(),
            "tp1 pp1 cp1");
  EXPECT_EQ(texts_of("bigscience", job_of("llama-1-7b", 64, "a100-80gb", "megatron-core", 128, 2048)).front(),
            "tp1 pp2 cp1");
  EXPECT_EQ(texts_of("bigscience", job_of("llama-2-13b", 64, "a100-80gb", "megatron-core", 128, 2048)).front(),
            "tp1 pp4 cp1");
}

TEST(Prescriptions, HuggingFaceStartsPlainInANodeAndShardsBetweenFastOnes) {
  EXPECT_EQ(texts_of("hugging-face", job_of("llama-1-7b", 8, "a100-80gb", "torchtitan", 128, 2048)).front(),
            "tp1 pp1 cp1 zero0");
  const std::string fast =
      texts_of("hugging-face", job_of("llama-1-7b", 64, "h100-80gb", "torchtitan", 128, 2048)).front();
  EXPECT_EQ(fast, "tp1 pp1 cp1 zero3");
  spec::Job slow = job_of("llama-1-7b", 64, "h100-80gb", "torchtitan", 128, 2048);
  slow.cluster.inter_bytes_per_second_per_gpu = 3e9;
  EXPECT_EQ(texts_of("hugging-face", slow).front(), "tp8 pp2 cp1");
}

TEST(Prescriptions, FillTheNodeIsThePlannersDefaultLayout) {
  const spec::Job job = paper_job();
  cost::Pricer pricer(job);
  const std::vector<Prescription> found = find_rule("18-bytes").prescribe(job, pricer);
  ASSERT_EQ(found.size(), 1u);
  ASSERT_TRUE(found.front().exact);
  EXPECT_TRUE(found.front().fix.matches(*found.front().exact));
  const search::Plan plan = search::find_plan(job, {});
  EXPECT_EQ(*found.front().exact, plan.default_layout->layout);
}

TEST(Rules, HaveNamesOfTheirOwnAndAllTheyNeed) {
  std::set<std::string_view> ids;
  for (const Rule& rule : rules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_NE(rule.statement, "");
    EXPECT_NE(rule.source, "");
    EXPECT_EQ(rule.is_comparison(), rule.side != nullptr && rule.is_pair != nullptr && !rule.axes.empty()) << rule.id;
  }
  EXPECT_THROW(find_rule("micro-batch-2"), base::InputError);
}

}  // namespace
}  // namespace layline::study
