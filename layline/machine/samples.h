// What was measured so far, as a file of JSON Lines: a first line for the machine, then a line a point. A process that
// is killed leaves at most its last line unfinished, and that one is measured again.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "layline/machine/plan.h"

namespace layline::machine {

// A sample whose median repeat is slower than the fastest by more than this share is noisy.
inline constexpr double kNoisySpread = 0.15;

struct MachineInfo {
  std::string name;  // processor, cores, memory
  int num_cores = 1;
  double memory_bytes = 0;

  bool operator==(const MachineInfo&) const = default;
};

struct Sample {
  int num_ranks = 1;
  int num_threads = 1;
  Point point;
  double seconds = 0;  // of one call, the fastest of the repeats
  double spread = 0;   // from the fastest to the median, as a share of the fastest
  int num_repeats = 0;
};

struct Samples {
  MachineInfo machine;
  std::vector<Sample> samples;
};

std::string to_line(const MachineInfo& machine);  // with the line's end
std::string to_line(const Sample& sample);

// The whole lines of the file. Throws base::InputError when it is no such file.
Samples read_samples(const std::string& path);

// Cuts off what a killed process left of a line at the file's end.
void drop_torn_line(const std::string& path);

// The points of num_ranks that are not among the samples, in their order.
std::vector<Point> missing_points(const Samples& samples, int num_ranks);

// What counts of each point of num_ranks: points that were measured again have several.
std::map<Point, Sample> best_samples(const Samples& samples, int num_ranks);

// Seconds of each point of num_ranks, from the best of its samples: of the fastest repeat of a kernel, and the median
// one of collectives and of whole layers, which are to take what they take in training.
std::map<Point, double> seconds_of_points(const Samples& samples, int num_ranks);

// The measured points of num_ranks that are noisy, or took longer than a larger one of their table by more than a
// tenth: something else ran meanwhile.
std::vector<Point> doubtful_points(const Samples& samples, int num_ranks);

}  // namespace layline::machine
