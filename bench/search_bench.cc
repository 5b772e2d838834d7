// How fast the planner searches: `layline_bench --benchmark_filter=Search`.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for_each.h>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "layline/search/enumerate.h"
#include "layline/search/search.h"
#include "layline/spec/registry.h"

namespace layline::search {
namespace {

spec::Job job_of(const char* model, const char* cluster, const char* engine, int64_t num_gpus, int64_t global_batch,
                 int64_t sequence_length) {
  spec::Job job;
  job.model = spec::get_model(model);
  job.cluster = spec::get_cluster(cluster);
  job.engine = spec::get_engine(engine);
  job.calibration = spec::default_calibration(job.engine, job.cluster.gpu);
  job.num_gpus = num_gpus;
  job.global_batch = global_batch;
  job.sequence_length = sequence_length;
  return job;
}

// Llama 13B on 64 GPUs, the job of the paper.
spec::Job paper_job(const char* engine) { return job_of("llama-13b", "a100-80gb", engine, 64, 2048, 2048); }

// Llama 3.1 405B on 100,000 GPUs, everything free.
spec::Job large_job(const char* engine) {
  return job_of("llama-3.1-405b", "h100-80gb", engine, 100'000, 400'000, 8192);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Of all threads: what a busy machine does not distort.
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double peak_rss_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void count_plan(benchmark::State& state, const Plan& plan, double seconds, double busy_seconds) {
  const double runs = static_cast<double>(state.iterations());
  state.counters["legal"] = static_cast<double>(plan.num_legal);
  state.counters["priced"] = static_cast<double>(plan.num_priced);
  state.counters["legal_per_second"] = static_cast<double>(plan.num_legal) * runs / seconds;
  state.counters["priced_per_second"] = static_cast<double>(plan.num_priced) * runs / seconds;
  state.counters["priced_per_core_second"] = static_cast<double>(plan.num_priced) * runs / busy_seconds;
  state.counters["peak_rss_mb"] = peak_rss_megabytes();
}

void run_search(benchmark::State& state, const spec::Job& job, const SearchOptions& options) {
  Plan plan;
  const double busy = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    plan = find_plan(job, options);
    benchmark::DoNotOptimize(plan);
  }
  count_plan(state, plan, seconds_since(start), cpu_seconds() - busy);
}

// Layouts priced a second of one core by a plain search: the same layouts on the same cores, but a new Pricer for each.
double plain_layouts_per_core_second(const spec::Job& job) {
  const std::vector<Mesh> tasks = meshes(job, {});
  const auto shared = std::make_shared<const spec::Job>(job);
  tbb::enumerable_thread_specific<int64_t> counts(0);
  const double busy = cpu_seconds();
  tbb::parallel_for_each(tasks.begin(), tasks.end(), [&](const Mesh& mesh) {
    int64_t& count = counts.local();
    for_each_layout(
        job, {}, mesh,
        [&](const layout::Layout& layout) {
          cost::Pricer pricer(shared, shared->calibration.coefficients());
          benchmark::DoNotOptimize(pricer.price(layout));
          ++count;
          return Visit::kNext;
        },
        [](const layout::Layout&) {});
  });
  return static_cast<double>(counts.combine(std::plus<>())) / (cpu_seconds() - busy);
}

void BM_SearchPaperJob(benchmark::State& state, const char* engine) { run_search(state, paper_job(engine), {}); }
BENCHMARK_CAPTURE(BM_SearchPaperJob, aleph_scaling, "aleph-scaling")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(BM_SearchPaperJob, layline, "layline")->Unit(benchmark::kMillisecond)->UseRealTime();

void BM_SearchLargeJob(benchmark::State& state, const char* engine) { run_search(state, large_job(engine), {}); }
BENCHMARK_CAPTURE(BM_SearchLargeJob, layline, "layline")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(BM_SearchLargeJob, megatron_core, "megatron-core")->Unit(benchmark::kMillisecond)->UseRealTime();

// Every layout priced, and how many times as fast that is as with a new Pricer for each.
void BM_SearchPricesAll(benchmark::State& state, const char* engine) {
  const spec::Job job = job_of("llama-65b", "a100-80gb", engine, 1024, 2048, 2048);
  SearchOptions options;
  options.prune = options.refine = options.remedies = false;
  run_search(state, job, options);
  const double plain = plain_layouts_per_core_second(job);
  state.counters["plain_per_core_second"] = plain;
  state.counters["times_plain"] = state.counters["priced_per_core_second"].value / plain;
}
BENCHMARK_CAPTURE(BM_SearchPricesAll, layline, "layline")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(BM_SearchPricesAll, megatron_core, "megatron-core")->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace layline::search
