#include "apps/layline/bench_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/layline/terminal.h"
#include "layline/base/text_table.h"
#include "layline/base/units.h"
#include "layline/machine/build.h"
#include "layline/machine/plan.h"
#include "layline/spec/measured_names.h"

namespace layline::app {
namespace {

namespace m = spec::measured;
using spec::Precision;

constexpr double kGiga = 1e9;
constexpr double kMicro = 1e-6;

double seconds_at(const spec::MeasuredRanks& ranks, const std::string& table, std::initializer_list<double> sizes) {
  return ranks.tables.at(table).at(std::span(sizes.begin(), sizes.size()));
}

// Of all cores together, of the largest product.
double product_rate(const spec::MeasuredRanks& ranks, std::string_view what, Precision precision, double size) {
  return ranks.num_ranks * 2 * size * size * size / seconds_at(ranks, m::name(what, precision), {size, size, size});
}

void add_products(const spec::Cluster& cluster, base::TextTable& table) {
  for (const Precision precision : {Precision::kBf16, Precision::kFp32}) {
    const double peak = cluster.gpu.peak_flops_per_second(precision) * cluster.measured->num_cores;
    for (const spec::MeasuredRanks& ranks : cluster.measured->by_ranks) {
      if (ranks.num_ranks > cluster.measured->num_cores) continue;
      std::vector<std::string> cells = {fmt::format("product {}", spec::name_of(precision)),
                                        fmt::format("{}", ranks.num_ranks)};
      for (const std::string_view what : {m::kProductForward, m::kProductInput, m::kProductWeight}) {
        const double rate = product_rate(ranks, what, precision, 1024);
        cells.push_back(fmt::format("{:.0f} ({})", rate / kGiga, base::format_percent(rate / peak, 0)));
      }
      table.add_row(std::move(cells));
    }
  }
}

std::string links_text(const spec::Cluster& cluster) {
  base::TextTable table({{.title = "collective"},
                         {.title = "ranks", .align = base::Align::kRight},
                         {.title = "64 B, µs", .align = base::Align::kRight},
                         {.title = "1 MiB, GB/s", .align = base::Align::kRight},
                         {.title = "8 MiB, GB/s", .align = base::Align::kRight}});
  for (const spec::MeasuredRanks& ranks : cluster.measured->by_ranks) {
    const int64_t size = ranks.num_ranks;
    for (const std::string_view what : {m::kAllReduce, m::kReduceScatter, m::kAllGather, m::kSend}) {
      const std::string name = m::name(what, Precision::kFp32, what == m::kSend ? 2 : size);
      if (ranks.tables.count(name) == 0) continue;
      const auto rate = [&](double bytes) { return bytes / seconds_at(ranks, name, {bytes}) / kGiga; };
      table.add_row({std::string(what), fmt::format("{}", size),
                     fmt::format("{:.0f}", seconds_at(ranks, name, {64}) / kMicro),
                     fmt::format("{:.2f}", rate(1 << 20)), fmt::format("{:.2f}", rate(8 << 20))});
    }
  }
  return table.render(text_style());
}

std::string noise_text(const machine::Samples& samples) {
  std::vector<machine::Sample> noisy;
  size_t num_points = 0;
  for (const int num_ranks : machine::rank_counts(samples.machine.num_cores)) {
    for (const auto& [point, sample] : machine::best_samples(samples, num_ranks)) {
      ++num_points;
      if (sample.spread > machine::kNoisySpread) noisy.push_back(sample);
    }
  }
  if (noisy.empty()) return "No measurement was noisy.\n";
  const auto worst =
      std::max_element(noisy.begin(), noisy.end(), [](const auto& a, const auto& b) { return a.spread < b.spread; });
  return fmt::format(
      "noisy: {} of {} measurements have a median more than {} above their fastest repeat, the worst {} ({}). Was "
      "something else running? The fastest counts.\n",
      noisy.size(), num_points, base::format_percent(machine::kNoisySpread, 0), worst->point.table,
      base::format_percent(worst->spread, 0));
}

}  // namespace

std::string bench_text(const spec::Cluster& cluster, const machine::Samples& samples) {
  base::TextTable products({{.title = "GFLOP/s of all cores (of peak)"},
                            {.title = "ranks", .align = base::Align::kRight},
                            {.title = "forward", .align = base::Align::kRight},
                            {.title = "input gradient", .align = base::Align::kRight},
                            {.title = "weight gradient", .align = base::Align::kRight}});
  add_products(cluster, products);
  const spec::Gpu& gpu = cluster.gpu;
  std::string text = fmt::format("{}\npeak of a core: {:.0f} GFLOP/s bf16, {:.0f} fp32; memory {:.1f} GB/s a core\n\n",
                                 cluster.title, gpu.bf16_flops_per_second / kGiga, gpu.fp32_flops_per_second / kGiga,
                                 gpu.memory_bytes_per_second / kGiga);
  text += products.render(text_style()) + "\n" + links_text(cluster) + "\n" + noise_text(samples);
  return text;
}

}  // namespace layline::app
