// What is measured of a machine: with how many ranks at a time, which tables, at which sizes.
#pragma once

#include <string>
#include <vector>

namespace layline::machine {

// One measurement: a point of a table.
struct Point {
  std::string table;  // as spec/measured_names.h has them, with precision and group size
  std::vector<double> sizes;

  auto operator<=>(const Point&) const = default;
};

// A table over all combinations of the axes' sizes.
struct Series {
  std::string table;
  std::vector<std::vector<double>> axes;
};

// Numbers of ranks that are busy together on a machine with so many cores, ascending: one, some, one a core, two a
// core.
std::vector<int> rank_counts(int num_cores);

// In the order in which they are measured. Where ranks share cores it is collectives and whole layers: what kernels
// take there follows from what they take alone.
std::vector<Series> series_for(int num_ranks, int num_cores);

std::vector<Point> points_of(const Series& series);
std::vector<Point> points_for(int num_ranks, int num_cores);

// Of the time that is meant for all numbers of ranks, the share of this one. What has been measured once is measured
// again until it is over, if it is doubtful.
double seconds_for(int num_ranks, int num_cores);

}  // namespace layline::machine
