#include "layline/machine/plan.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>

#include "layline/spec/measured_names.h"

namespace layline::machine {
namespace {

namespace m = spec::measured;
using spec::Precision;

constexpr double kSecondsInAll = 90;
constexpr Precision kPrecisions[] = {Precision::kBf16, Precision::kFp32};

const std::vector<double> kTokens = {64, 256, 1024};
const std::vector<double> kWidths = {128, 384, 1024, 2048};
const std::vector<double> kFewTokens = {64, 512};  // in fp32, of which there is less to expect
const std::vector<double> kFewWidths = {128, 512, 2048};
const std::vector<double> kElements = {4096, 65536, 524288, 4194304};
const std::vector<double> kHeads = {3, 12, 48};
const std::vector<double> kFewHeads = {3, 12};
const std::vector<double> kSequences = {64, 256, 1024};
const std::vector<double> kBytes = {64, 4096, 65536, 1 << 20, 8 << 20};
const std::vector<double> kHiddens = {256, 768};
const std::vector<double> kLayerTokens = {64, 384};
const std::vector<double> kFewHiddens = {256};

const std::vector<double>& hiddens_of(Precision precision) {
  return precision == Precision::kBf16 ? kHiddens : kFewHiddens;
}

void add_kernels(Precision precision, std::vector<Series>& all) {
  for (const std::string_view what :
       {m::kNorm, m::kNormBackward, m::kUnfusedNorm, m::kUnfusedNormBackward, m::kSwiglu, m::kSwigluBackward, m::kRope,
        m::kAdd, m::kCopy, m::kReadRows, m::kAddToRows, m::kCrossEntropy, m::kAdamw, m::kSumOfSquares, m::kZero}) {
    all.push_back({m::name(what, precision), {kElements}});
  }
}

void add_products(Precision precision, std::vector<Series>& all) {
  for (const std::string_view what : {m::kProductForward, m::kProductInput, m::kProductWeight}) {
    if (precision == Precision::kBf16) {
      all.push_back({m::name(what, precision), {kTokens, kWidths, kWidths}});
    } else {
      all.push_back({m::name(what, precision), {kFewTokens, kFewWidths, kFewWidths}});
    }
  }
}

void add_attention(Precision precision, std::vector<Series>& all) {
  for (const std::string_view what : {m::kAttentionForward, m::kAttentionBackward}) {
    all.push_back({m::name(what, precision), {kHeads, kSequences}});
  }
  for (const std::string_view what : {m::kUnfusedForward, m::kUnfusedBackward}) {
    all.push_back({m::name(what, precision), {kFewHeads, kSequences}});
  }
}

void add_collectives(Precision precision, int num_ranks, std::vector<Series>& all) {
  for (int64_t size = 2; size <= num_ranks; size *= 2) {
    if (num_ranks % size != 0) continue;
    for (const std::string_view what : {m::kAllReduce, m::kReduceScatter, m::kAllGather}) {
      all.push_back({m::name(what, precision, size), {kBytes}});
    }
    for (const std::string_view what :
         {m::kSplitForward, m::kSplitBackward, m::kSequenceForward, m::kSequenceBackward}) {
      all.push_back({m::name(what, precision, size), {hiddens_of(precision), kLayerTokens}});
    }
  }
  if (num_ranks % 2 == 0) all.push_back({m::name(m::kSend, precision, 2), {kBytes}});
}

}  // namespace

std::vector<int> rank_counts(int num_cores) {
  std::vector<int> counts = {1, 2, 4, num_cores, 2 * num_cores};
  // Odd numbers have no pairs that all send at once.
  std::erase_if(counts, [&](int count) { return count > 2 * num_cores || (count > 1 && count % 2 != 0); });
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

std::vector<Series> series_for(int num_ranks, int num_cores) {
  std::vector<Series> all;
  for (const Precision precision : kPrecisions) {
    add_collectives(precision, num_ranks, all);
    all.push_back({m::name(m::kLayerForward, precision), {hiddens_of(precision), kLayerTokens}});
    all.push_back({m::name(m::kLayerBackward, precision), {hiddens_of(precision), kLayerTokens}});
    if (num_ranks > num_cores) continue;
    add_kernels(precision, all);
    add_attention(precision, all);
    add_products(precision, all);
  }
  return all;
}

std::vector<Point> points_of(const Series& series) {
  std::vector<Point> points = {{series.table, {}}};
  for (const std::vector<double>& axis : series.axes) {
    std::vector<Point> longer;
    for (const Point& point : points) {
      for (const double size : axis) {
        longer.push_back(point);
        longer.back().sizes.push_back(size);
      }
    }
    points = std::move(longer);
  }
  return points;
}

std::vector<Point> points_for(int num_ranks, int num_cores) {
  std::vector<Point> points;
  for (const Series& series : series_for(num_ranks, num_cores)) {
    const std::vector<Point> more = points_of(series);
    points.insert(points.end(), more.begin(), more.end());
  }
  return points;
}

double seconds_for(int num_ranks, int num_cores) {
  const auto weight = [&](int count) { return count * static_cast<double>(points_for(count, num_cores).size()); };
  const std::vector<int> counts = rank_counts(num_cores);
  const double all = std::transform_reduce(counts.begin(), counts.end(), 0.0, std::plus<>(), weight);
  return kSecondsInAll * weight(num_ranks) / all;
}

}  // namespace layline::machine
