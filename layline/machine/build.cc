#include "layline/machine/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "layline/base/error.h"
#include "layline/cost/measured_layer.h"
#include "layline/machine/probe.h"
#include "layline/spec/measured_names.h"

namespace layline::machine {
namespace {

namespace m = spec::measured;
using spec::Precision;

constexpr const char* kEngine = "layline";
constexpr double kUsableMemory = 0.9;  // of the machine's: the rest is the system's

using Seconds = std::map<Point, double>;

spec::MeasuredTable table_of(const Series& series, const Seconds& seconds) {
  spec::MeasuredTable table{series.axes, {}};
  for (const Point& point : points_of(series)) {
    const auto found = seconds.find(point);
    if (found == seconds.end()) {
      throw base::InputError(fmt::format("the measurement of {} is not complete", series.table));
    }
    table.seconds.push_back(found->second);
  }
  return table;
}

spec::MeasuredRanks ranks_of(const Samples& samples, int num_ranks) {
  spec::MeasuredRanks ranks;
  ranks.num_ranks = num_ranks;
  const Seconds seconds = seconds_of_points(samples, num_ranks);
  for (const Sample& sample : samples.samples) {
    if (sample.num_ranks == num_ranks) ranks.num_threads = sample.num_threads;
  }
  for (const Series& series : series_for(num_ranks, samples.machine.num_cores))
    ranks.tables[series.table] = table_of(series, seconds);
  return ranks;
}

// The highest rate of any product with all cores busy, of one core.
double peak_of(const spec::Measurements& measured, Precision precision) {
  double best = 0;
  for (const spec::MeasuredRanks& ranks : measured.by_ranks) {
    if (ranks.num_ranks > measured.num_cores) continue;
    const double cores = std::min(ranks.num_ranks, measured.num_cores);
    const double busy = static_cast<double>(ranks.num_ranks) / cores / ranks.num_threads;
    for (const std::string_view what : {m::kProductForward, m::kProductInput}) {
      const std::string name = m::name(what, precision);
      const std::vector<Point> points = points_of({name, ranks.tables.at(name).axes});
      for (size_t i = 0; i < points.size(); ++i) {
        const std::vector<double>& z = points[i].sizes;
        best = std::max(best, busy * 2 * z[0] * z[1] * z[2] / ranks.tables.at(name).seconds[i]);
      }
    }
  }
  return best;
}

double last_seconds(const spec::MeasuredRanks& ranks, const std::string& name) {
  return ranks.tables.at(name).seconds.back();
}
double last_size(const spec::MeasuredRanks& ranks, const std::string& name) {
  return ranks.tables.at(name).axes.front().back();
}

// Reads two and writes one, of one rank with all cores busy.
double memory_rate(const spec::MeasuredRanks& ranks) {
  const std::string name = m::name(m::kAdd, Precision::kFp32);
  return 3 * 4 * last_size(ranks, name) / last_seconds(ranks, name);
}

const spec::MeasuredRanks& one_a_core(const spec::Measurements& measured) {
  return measured.nearest(measured.num_cores);
}

spec::Gpu gpu_of(const spec::Measurements& measured) {
  spec::Gpu gpu;
  gpu.name = "cpu-core";
  gpu.title = "core of " + measured.machine;
  gpu.family = "cpu-measured";
  gpu.bf16_flops_per_second = peak_of(measured, Precision::kBf16);
  gpu.fp32_flops_per_second = peak_of(measured, Precision::kFp32);
  gpu.memory_bytes = std::floor(kUsableMemory * measured.memory_bytes / measured.by_ranks.back().num_ranks);
  gpu.memory_bytes_per_second = memory_rate(one_a_core(measured));
  gpu.num_sms = 1;
  gpu.sources["*"] = "measured by layline bench on " + measured.machine;
  gpu.sources["memory_bytes"] = "the machine's, less a tenth, divided among as many ranks as were measured together";
  return gpu;
}

void set_links(const spec::Measurements& measured, spec::Cluster& cluster) {
  const auto with_two = std::find_if(measured.by_ranks.begin(), measured.by_ranks.end(),
                                     [](const spec::MeasuredRanks& ranks) { return ranks.num_ranks == 2; });
  const std::string name = m::name(m::kSend, Precision::kBf16, 2);
  cluster.intra_bytes_per_second = last_size(*with_two, name) / last_seconds(*with_two, name);
  cluster.intra_latency_seconds = with_two->tables.at(name).seconds.front();
  cluster.inter_bytes_per_second_per_node = cluster.intra_bytes_per_second;
  cluster.inter_bytes_per_second_per_gpu = cluster.intra_bytes_per_second;
  cluster.inter_latency_seconds = cluster.intra_latency_seconds;
}

spec::Job probe_job(const spec::Cluster& cluster, int num_ranks, double hidden, Precision precision) {
  spec::Job job;
  job.model = probe_model(static_cast<int64_t>(hidden));
  job.cluster = cluster;
  job.engine.name = kEngine;
  job.num_gpus = num_ranks;
  job.global_batch = 1;
  job.sequence_length = kProbeSequence;
  job.precision = precision;
  return job;
}

struct LayerTables {
  std::string forward, backward, forward_factor, backward_factor;
};

// Whole layers against what the tables of `ranks` say of them so far.
void add_factors(const spec::Cluster& cluster, Precision precision, const LayerTables& names, memory::LayerShape shape,
                 spec::MeasuredRanks& ranks) {
  const spec::MeasuredTable& forward = ranks.tables.at(names.forward);
  const spec::MeasuredTable& backward = ranks.tables.at(names.backward);
  spec::MeasuredTable forward_factor{forward.axes, {}}, backward_factor{backward.axes, {}};
  const std::vector<Point> points = points_of({"", forward.axes});
  for (size_t i = 0; i < points.size(); ++i) {
    const spec::Job job = probe_job(cluster, ranks.num_ranks, points[i].sizes[0], precision);
    shape.mb = static_cast<int64_t>(points[i].sizes[1]) / kProbeSequence;
    const cost::LayerCost cost = cost::measured_layer_cost(job, cost::Measured(job, {}), shape);
    forward_factor.seconds.push_back(forward.seconds[i] / cost.forward.total());
    backward_factor.seconds.push_back(backward.seconds[i] / cost.backward.total());
  }
  ranks.tables[names.forward_factor] = std::move(forward_factor);
  ranks.tables[names.backward_factor] = std::move(backward_factor);
}

void add_layer_factors(const spec::Cluster& cluster, Precision precision, spec::MeasuredRanks& ranks) {
  const auto named = [&](std::string_view what, int64_t size) {
    return size == 1 ? m::name(what, precision) : m::name(what, precision, size);
  };
  memory::LayerShape shape;
  add_factors(cluster, precision,
              {named(m::kLayerForward, 1), named(m::kLayerBackward, 1), named(m::kForwardFactor, 1),
               named(m::kBackwardFactor, 1)},
              shape, ranks);
  for (shape.tp = 2; ranks.tables.count(named(m::kSplitForward, shape.tp)) != 0; shape.tp *= 2) {
    shape.sp = false;
    add_factors(cluster, precision,
                {named(m::kSplitForward, shape.tp), named(m::kSplitBackward, shape.tp),
                 named(m::kSplitForwardFactor, shape.tp), named(m::kSplitBackwardFactor, shape.tp)},
                shape, ranks);
    shape.sp = true;
    add_factors(cluster, precision,
                {named(m::kSequenceForward, shape.tp), named(m::kSequenceBackward, shape.tp),
                 named(m::kSequenceForwardFactor, shape.tp), named(m::kSequenceBackwardFactor, shape.tp)},
                shape, ranks);
  }
}

spec::Calibration calibration_of(const spec::Cluster& cluster) {
  spec::Calibration calibration;
  calibration.name = "bench";
  calibration.engine = kEngine;
  calibration.gpu = cluster.gpu.name;
  calibration.sources = {"layline bench"};
  calibration.relative_error_bar = 0.25;
  return calibration;
}

}  // namespace

spec::Cluster build_cluster(const Samples& samples) {
  auto measured = std::make_shared<spec::Measurements>();
  measured->engine = kEngine;
  measured->machine = samples.machine.name;
  measured->num_cores = samples.machine.num_cores;
  measured->memory_bytes = samples.machine.memory_bytes;
  for (const int num_ranks : rank_counts(samples.machine.num_cores)) {
    measured->by_ranks.push_back(ranks_of(samples, num_ranks));
  }
  spec::Cluster cluster;
  cluster.name = "this-machine";
  cluster.title = samples.machine.name;
  cluster.gpu = gpu_of(*measured);
  cluster.gpus_per_node = 1024;
  set_links(*measured, cluster);
  cluster.max_nodes = 1;
  cluster.sources["*"] = "measured by layline bench on " + measured->machine;
  cluster.sources["gpus_per_node"] = "ranks that may share the machine's cores";
  cluster.measured = measured;
  for (spec::MeasuredRanks& ranks : measured->by_ranks) {
    for (const Precision precision : {Precision::kBf16, Precision::kFp32}) {
      add_layer_factors(cluster, precision, ranks);
    }
  }
  cluster.calibration = std::make_shared<const spec::Calibration>(calibration_of(cluster));
  return cluster;
}

}  // namespace layline::machine
