// Fits to runs whose coefficients are known.
#include "layline/calibrate/fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/calibrate/synthetic.h"

namespace layline::calibrate {
namespace {

using test::append;
using test::job_text;
using test::remembered_runs;
using test::shared_job;
using test::timed_runs;

spec::Coefficients planted(unsigned seed) {
  std::mt19937 random(seed);
  const auto draw = [&](double lower, double upper) {
    return std::uniform_real_distribution<double>(lower, upper)(random);
  };
  spec::Coefficients truth;
  truth.gemm_efficiency = draw(0.55, 0.95);
  truth.memory_efficiency = draw(0.6, 0.95);
  truth.tp_intra_efficiency = draw(0.3, 0.9);
  truth.dp_inter_efficiency = draw(0.3, 0.9);
  truth.flash2_forward_efficiency = draw(0.4, 0.8);
  truth.micro_batch_seconds = draw(1e-3, 1e-2);
  truth.pressure_seconds = 0;
  return truth;
}

std::vector<Observation> two_jobs(const spec::Coefficients& truth) {
  std::vector<Observation> runs = timed_runs(shared_job(job_text(64)), truth);
  append(runs, timed_runs(shared_job(job_text(32)), truth));
  return runs;
}

double worst_error(const std::vector<Observation>& runs, const Fit& fit) { return error_quantile(runs, fit, 1.0); }

class PlantedFit : public testing::TestWithParam<unsigned> {};

TEST_P(PlantedFit, RecoversWhatTheTimesWereMadeWith) {
  const spec::Coefficients truth = planted(GetParam());
  const std::vector<Observation> runs = two_jobs(truth);
  const Fit before{}, after = fit(runs, before, {});
  EXPECT_GT(worst_error(runs, before), 0.03);
  EXPECT_LT(error_quantile(runs, after, 0.9), 0.01);
  EXPECT_NEAR(after.coefficients.gemm_efficiency / truth.gemm_efficiency, 1, 0.05);
  EXPECT_NEAR(after.coefficients.tp_intra_efficiency / truth.tp_intra_efficiency, 1, 0.25);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlantedFit, testing::Values(1u, 2u, 3u));

TEST(Fit, PredictsSizesOfJobsItHasNotSeen) {
  const spec::Coefficients truth = planted(7);
  const Fit learned = fit(two_jobs(truth), {}, {});
  auto text = job_text(128);
  text.model = "llama-30b";
  EXPECT_LT(error_quantile(timed_runs(shared_job(text), truth), learned, 0.9), 0.05);
}

TEST(Fit, ToRunsOfTheDefaultsKeepsTheDefaults) {
  const spec::Coefficients defaults;
  const Fit learned = fit(two_jobs(defaults), {}, {});
  for (const spec::CoefficientInfo& info : spec::coefficient_table()) {
    const double scale = std::max(std::abs(info.default_value), 0.02 * info.prior);
    EXPECT_NEAR(learned.coefficients.*(info.member), info.default_value, 0.02 * scale) << info.name;
  }
}

TEST(Fit, OfNothingIsTheStart) {
  Fit start;
  start.coefficients.gemm_efficiency = 0.5;
  start.memory_relative_sigma = 0.2;
  const Fit learned = fit({}, start, {});
  EXPECT_EQ(changed_values(learned.coefficients), changed_values(start.coefficients));
  EXPECT_EQ(learned.memory_relative_sigma, 0.2);
}

TEST(Fit, LeavesAloneWhatTheRunsSayNothingAbout) {
  const Fit learned = fit(two_jobs(planted(4)), {}, {});
  // None of these runs has fp8, FlashAttention 1, plain attention, context parallelism or its bytes measured.
  const spec::Coefficients defaults;
  for (const char* name : {"fp8_gemm_efficiency", "flash1_forward_efficiency", "flash1_backward_efficiency",
                           "unfused_score_traffic", "fused_softmax_score_traffic", "unfused_norm_traffic", "cp_overlap",
                           "hidden_activation_scale", "transient_layers", "reserve_scale"}) {
    const spec::CoefficientInfo* info = spec::find_coefficient(name);
    ASSERT_NE(info, nullptr) << name;
    EXPECT_NEAR(learned.coefficients.*(info->member) / info->default_value, 1, 1e-6) << name;
  }
  EXPECT_EQ(learned.memory_relative_sigma, Fit{}.memory_relative_sigma);
}

TEST(Fit, HardlyMindsAFewRunsThatAreFarOff) {
  const spec::Coefficients truth = planted(5);
  const std::vector<Observation> clean = two_jobs(truth);
  std::vector<Observation> spoiled = clean;
  for (size_t i = 3; i < spoiled.size(); i += 12) spoiled[i].seconds *= i % 24 == 3 ? 3.0 : 0.4;
  EXPECT_LT(error_quantile(clean, fit(spoiled, {}, {}), 0.8), 0.02);
}

TEST(Fit, AveragesHonestNoiseAway) {
  const spec::Coefficients truth = planted(6);
  const std::vector<Observation> clean = two_jobs(truth);
  std::vector<Observation> noisy = clean;
  std::mt19937 random(6);
  std::normal_distribution<double> noise(0, 0.02);
  for (Observation& run : noisy) run.seconds *= std::exp(noise(random));
  EXPECT_LT(error_quantile(clean, fit(noisy, {}, {}), 0.8), 0.02);
}

TEST(Fit, IsTheSameToTheLastBitWhereverTheJobsLie) {
  const spec::Coefficients truth = planted(8);
  // Two arrays of jobs, so that the second order of addresses is the first one's reverse.
  const auto pool = std::make_shared<std::vector<spec::Job>>();
  for (const int64_t gpus : {32, 64, 64, 32}) pool->push_back(layline::test::make_job(job_text(gpus)));
  const auto job = [&](size_t i) { return std::shared_ptr<const spec::Job>(pool, &(*pool)[i]); };
  std::vector<Observation> upward = timed_runs(job(0), truth), downward = timed_runs(job(3), truth);
  append(upward, timed_runs(job(1), truth));
  append(downward, timed_runs(job(2), truth));
  const Fit a = fit(upward, {}, {}), b = fit(downward, {}, {});
  EXPECT_EQ(changed_values(a.coefficients), changed_values(b.coefficients));
}

TEST(Fit, StaysWithinItsBoundsOnAbsurdTimes) {
  for (const double factor : {1e-4, 1e4}) {
    std::vector<Observation> runs = timed_runs(shared_job(job_text()), {});
    for (Observation& run : runs) run.seconds *= factor;
    const Fit learned = fit(runs, {}, {});
    for (const spec::CoefficientInfo& info : spec::coefficient_table()) {
      const double value = learned.coefficients.*(info.member);
      EXPECT_GE(value, info.lower) << info.name;
      EXPECT_LE(value, info.upper) << info.name;
    }
  }
}

// Of an engine whose activations are estimated: layline's are followed operator by operator, with nothing to fit.
layline::test::JobText scaled_job_text(int64_t num_gpus = 64) {
  layline::test::JobText text = job_text(num_gpus);
  text.engine = "megatron-core";
  return text;
}

TEST(MemoryFit, RecoversTheBytes) {
  spec::Coefficients truth;
  truth.hidden_activation_scale = 1.25;
  truth.inner_activation_scale = 0.8;
  truth.transient_layers = 1.0;
  const std::vector<Observation> runs = remembered_runs(shared_job(scaled_job_text()), truth, false);
  const Fit learned = fit(runs, {}, {});
  for (const Observation& run : runs) {
    cost::Pricer pricer(run.job, learned.coefficients);
    const double bytes = memory_of(pricer.stages(run.layout), run.memory_rank, run.memory_kind);
    EXPECT_NEAR(bytes / run.memory_bytes, 1, 0.03);
  }
  EXPECT_NEAR(learned.coefficients.hidden_activation_scale, truth.hidden_activation_scale, 0.12);
  EXPECT_EQ(learned.coefficients.gemm_efficiency, spec::Coefficients{}.gemm_efficiency);
}

TEST(MemoryFit, LearnsFromVerdictsAlone) {
  spec::Coefficients truth;
  truth.hidden_activation_scale = truth.inner_activation_scale = 1.6;
  std::vector<Observation> runs = remembered_runs(shared_job(scaled_job_text()), truth, true);
  auto text = scaled_job_text(128);
  text.model = "llama-30b";
  append(runs, remembered_runs(shared_job(text), truth, true));
  const auto num_wrong = [&](const Fit& fit) {
    int wrong = 0;
    for (const Observation& run : runs) {
      wrong += cost::Pricer(run.job, fit.coefficients).price(run.layout).fits == run.ran_out_of_memory;
    }
    return wrong;
  };
  const Fit learned = fit(runs, {}, {});
  EXPECT_GT(num_wrong({}), 3);
  EXPECT_LE(num_wrong(learned), num_wrong({}) / 3);
  for (const spec::CoefficientInfo& info : spec::coefficient_table()) {
    if (info.kind == spec::CoefficientClass::kTime) {
      EXPECT_EQ(learned.coefficients.*(info.member), info.default_value) << info.name;
    }
  }
}

}  // namespace
}  // namespace layline::calibrate
