#include "layline/trainer/measure/measure.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/machine/plan.h"
#include "layline/machine/samples.h"
#include "layline/trainer/comm/gloo_group.h"
#include "layline/trainer/comm/rendezvous.h"
#include "layline/trainer/comm/thread_group.h"
#include "layline/trainer/loop/cores.h"
#include "layline/trainer/loop/memory_counter.h"
#include "layline/trainer/measure/operation.h"

namespace layline::trainer::measure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kTimeout{60};
constexpr double kRepeatSeconds = 3e-3;         // that a repeat takes at least; …
constexpr double kSharedRepeatSeconds = 12e-3;  // … where ranks share cores, and take turns every few milliseconds
constexpr int64_t kMostCalls = 400;             // of a repeat
constexpr size_t kRepeats = 3;
constexpr size_t kLongRepeats = 2;     // of calls that take longer than kMostSeconds
constexpr size_t kMostRepeats = 6;     // of what is noisy, …
constexpr double kMostSeconds = 0.05;  // … until it has taken that long
constexpr int kMostRounds = 5;         // over points that are doubtful
constexpr double kNoise = 0.05;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The largest of all ranks'.
double largest(comm::Group& world, double value) {
  const at::Tensor tensor = at::full({1}, value, at::kDouble);
  world.all_reduce_max(tensor);
  return tensor.item<double>();
}

// Seconds of a call when all ranks do the same, until the last one is done.
double time_calls(const Operation& operation, comm::Group& world, int64_t calls) {
  world.barrier();
  double seconds = 0;
  for (int64_t i = 0; i < calls; ++i) {
    if (operation.prepare) operation.prepare(i);
    const Clock::time_point start = Clock::now();
    operation.run(i);
    seconds += seconds_since(start);
  }
  return largest(world, seconds) / static_cast<double>(calls);
}

double relative_spread(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2] / seconds.front() - 1;
}

machine::Sample measure(const machine::Point& point, comm::GroupFactory& factory, comm::Group& world,
                        double repeat_seconds) {
  const Operation operation = make_operation(point, factory);
  time_calls(operation, world, 1);
  const double once = time_calls(operation, world, 1);
  const int64_t calls = std::clamp<int64_t>(static_cast<int64_t>(repeat_seconds / once) + 1, 1, kMostCalls);
  std::vector<double> seconds;
  if (once > kMostSeconds) seconds.push_back(once);
  const size_t repeats = once > kMostSeconds ? kLongRepeats : kRepeats;
  double spent = 0;
  const auto wants_more = [&] {
    if (seconds.size() < repeats) return true;
    const bool has_time = seconds.size() < kRepeats || (seconds.size() < kMostRepeats && spent < kMostSeconds);
    return has_time && relative_spread(seconds) > kNoise;
  };
  while (wants_more()) {
    seconds.push_back(time_calls(operation, world, calls));
    spent += largest(world, seconds.back() * static_cast<double>(calls));
  }
  machine::Sample sample;
  sample.num_ranks = static_cast<int>(world.size());
  sample.num_threads = at::get_num_threads();
  sample.point = point;
  sample.seconds = operation.share * *std::min_element(seconds.begin(), seconds.end());
  sample.spread = relative_spread(seconds);
  sample.num_repeats = static_cast<int>(seconds.size());
  return sample;
}

// Lines at the end of a file.
class Appender {
 public:
  explicit Appender(const std::string& path)
      : path_(path), file_descriptor_(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC)) {
    if (file_descriptor_ < 0) throw base::InputError(path, "cannot be written");
  }
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;
  ~Appender() { close(file_descriptor_); }
  void append(const std::string& line) const { base::write_fully(file_descriptor_, line, path_); }

 private:
  std::string path_;
  int file_descriptor_;
};

void measure_all(comm::GroupFactory& factory, const std::string& samples_file) {
  const at::NoGradGuard no_grad;
  const std::unique_ptr<comm::Group> world = factory.make_world();
  const Appender appender(samples_file);
  const int num_ranks = static_cast<int>(world->size());
  const Clock::time_point start = Clock::now();
  for (int round = 0; round <= kMostRounds; ++round) {
    const machine::Samples samples = machine::read_samples(samples_file);
    const int num_cores = samples.machine.num_cores;
    const std::vector<machine::Point> points =
        round == 0 ? machine::missing_points(samples, num_ranks) : machine::doubtful_points(samples, num_ranks);
    world->barrier();  // before anybody writes what others still read
    for (const machine::Point& point : points) {
      const bool is_late = largest(*world, seconds_since(start)) > machine::seconds_for(num_ranks, num_cores);
      if (round > 0 && is_late) return;
      const machine::Sample sample =
          measure(point, factory, *world, num_ranks > num_cores ? kSharedRepeatSeconds : kRepeatSeconds);
      if (world->rank() == 0) appender.append(machine::to_line(sample));
    }
    world->barrier();
  }
}

}  // namespace

void measure_missing(const loop::Launch& launch, const std::string& samples_file) {
  loop::MemoryCounter::install();
  if (launch.world_size == 1) {
    comm::ThreadWorld world(1, kTimeout);
    return measure_all(*world.factory(0), samples_file);
  }
  const comm::RunStore store({.rank = launch.rank,
                              .world_size = launch.world_size,
                              .host = launch.master_addr,
                              .port = launch.master_port,
                              .timeout = kTimeout});
  loop::use_share_of_cores(store);
  comm::GlooFactory factory(store.store(), launch.rank, launch.world_size,
                            {.timeout = kTimeout, .address = store.address()});
  measure_all(factory, samples_file);
}

}  // namespace layline::trainer::measure
