#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "apps/layline/bench_text.h"
#include "apps/layline/command.h"
#include "apps/layline/find_trainer.h"
#include "apps/layline/supervisor.h"
#include "apps/layline/terminal.h"
#include "apps/layline/train_launcher.h"
#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/machine/build.h"
#include "layline/spec/registry.h"

namespace layline::app {
namespace {

struct BenchFlags {
  std::string output, program;
};

machine::MachineInfo this_machine() {
  cpu_set_t cores;
  const int num_cores = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
  const double bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  return {machine_name(), num_cores, bytes};
}

[[noreturn]] void refuse(const std::string& path, const std::string& found, const std::string& here) {
  throw base::InputError(path, fmt::format("is of another machine, \"{}\"; this one is \"{}\". Choose another file, or "
                                           "remove it",
                                           found, here));
}

// A file that is there is either what this program wrote on this machine, or left alone.
void check_output(const std::string& path, const machine::MachineInfo& here) {
  if (!std::filesystem::exists(path)) return;
  const spec::Cluster old = spec::parse_cluster(base::read_file(path), path);
  if (!old.measured)
    throw base::InputError(path, "is a cluster that layline bench did not measure; choose another file");
  if (old.measured->machine != here.name) refuse(path, old.measured->machine, here.name);
}

// Goes on with what an interrupted run left.
void prepare_samples(const std::string& path, const machine::MachineInfo& here) {
  if (std::filesystem::exists(path)) {
    const machine::Samples old = machine::read_samples(path);
    if (old.machine.name != here.name) refuse(path, old.machine.name, here.name);
    machine::drop_torn_line(path);
    return;
  }
  base::write_file_atomically(path, machine::to_line(here));
}

// Tells the sink how many lines the file of samples has, until it is destroyed.
class SampleWatch {
 public:
  SampleWatch(std::string path, int64_t num_total)
      : path_(std::move(path)), num_total_(num_total), sink_(progress_sink()) {
    if (sink_) thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  }
  ~SampleWatch() {
    if (!sink_) return;
    thread_.request_stop();
    thread_.join();
    sink_->finish();
  }
  SampleWatch(const SampleWatch&) = delete;
  SampleWatch& operator=(const SampleWatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  int64_t num_lines() const {
    const std::string text = base::read_file(path_);
    return std::count(text.begin(), text.end(), '\n') - 1;
  }

  void watch(const std::stop_token& stop) {
    const int64_t before = num_lines();
    const Clock::time_point start = Clock::now();
    while (!stop.stop_requested()) {
      sink_->show({.task = "measuring",
                   .num_done = num_lines() - before,
                   .num_total = num_total_ - before,
                   .elapsed_seconds = std::chrono::duration<double>(Clock::now() - start).count(),
                   .remark = ""});
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }

  std::string path_;
  int64_t num_total_;
  std::unique_ptr<base::ProgressSink> sink_;
  std::jthread thread_;
};

void measure(const SignalQueue& signals, const std::string& trainer, const std::string& samples_file,
             const machine::MachineInfo& here) {
  int64_t num_total = 0;
  for (const int num_ranks : machine::rank_counts(here.num_cores)) {
    num_total += static_cast<int64_t>(machine::points_for(num_ranks, here.num_cores).size());
  }
  const SampleWatch watch(samples_file, num_total);
  for (const int num_ranks : machine::rank_counts(here.num_cores)) {
    if (machine::missing_points(machine::read_samples(samples_file), num_ranks).empty()) continue;
    const int code = Supervisor(signals).run({trainer, "bench", samples_file}, num_ranks);
    if (code != 0) throw Exit{code};
  }
}

void run_bench(const BenchFlags& flags) {
  const SignalQueue signals;
  const std::string trainer = find_trainer(flags.program);
  const machine::MachineInfo here = this_machine();
  const std::string samples_file = flags.output + ".samples";
  check_output(flags.output, here);
  prepare_samples(samples_file, here);
  measure(signals, trainer, samples_file, here);
  const machine::Samples samples = machine::read_samples(samples_file);
  const spec::Cluster cluster = machine::build_cluster(samples);
  base::write_file_atomically(flags.output, spec::to_json(cluster));
  std::filesystem::remove(samples_file);
  print(bench_text(cluster, samples) + fmt::format("\nNext:  layline plan --cluster {} --model llama-tiny --gpus {} "
                                                   "--global-batch 8 --seq-len 256\n",
                                                   flags.output, here.num_cores));
}

}  // namespace

void add_bench(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand("bench", "Measure this machine, for predictions that hold on it");
  command->add_option("--output", flags->output, "cluster spec to write; --cluster and RUN.json's cluster take it")
      ->required()
      ->type_name("MACHINE.json");
  command->add_option("--program", flags->program, "what to start instead of layline-train")->group("");
  command->footer(
      "Example: layline bench --output machine.json\n"
      "Takes about two minutes; nothing else should run. Interrupted, the same command goes on.");
  command->callback([flags] { run_bench(*flags); });
}

}  // namespace layline::app
