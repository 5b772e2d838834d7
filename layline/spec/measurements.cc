#include "layline/spec/measurements.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace layline::spec {
namespace {

// Where a size lies on an axis: between points `index` and `index + 1`, a `share` of the way in logarithms.
struct Place {
  size_t index = 0;
  double share = 0;
  double beyond = 1;  // factor by which it is beyond the last point
};

Place place_of(const std::vector<double>& axis, double size) {
  if (size <= axis.front()) return {};
  if (size >= axis.back()) return {axis.size() - 1, 0, size / axis.back()};
  const auto after = std::upper_bound(axis.begin(), axis.end(), size);
  const size_t index = static_cast<size_t>(after - axis.begin()) - 1;
  return {index, std::log(size / axis[index]) / std::log(axis[index + 1] / axis[index]), 1};
}

}  // namespace

double MeasuredTable::at(std::span<const double> sizes) const {
  assert(sizes.size() == axes.size());
  std::vector<Place> places;
  double factor = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    places.push_back(place_of(axes[i], sizes[i]));
    factor *= places.back().beyond;
  }
  double log_seconds = 0;
  for (size_t corner = 0; corner < (size_t{1} << axes.size()); ++corner) {
    double weight = 1;
    size_t index = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      const bool upper = (corner >> i & 1) != 0;
      weight *= upper ? places[i].share : 1 - places[i].share;
      index = index * axes[i].size() + std::min(places[i].index + (upper ? 1 : 0), axes[i].size() - 1);
    }
    if (weight > 0) log_seconds += weight * std::log(seconds[index]);
  }
  return factor * std::exp(log_seconds);
}

const MeasuredRanks& Measurements::nearest(double num_ranks) const {
  assert(!by_ranks.empty());
  const auto distance = [&](const MeasuredRanks& one) { return std::abs(std::log(num_ranks / one.num_ranks)); };
  return *std::min_element(by_ranks.begin(), by_ranks.end(),
                           [&](const MeasuredRanks& a, const MeasuredRanks& b) { return distance(a) < distance(b); });
}

}  // namespace layline::spec
