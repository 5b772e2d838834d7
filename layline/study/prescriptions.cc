#include "layline/study/prescriptions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "layline/search/default_layout.h"
#include "layline/search/enumerate.h"

namespace layline::study {
namespace {

constexpr double kBytesPerParameter = 18;
constexpr double kMemoryShare = 0.75;
constexpr double kFastLinkBytesPerSecond = 25e9;  // a GPU, between nodes: 200 Gbit/s
constexpr int64_t kLongSequence = 8192;

// Model size, and the axes that the guides run it with.
struct TableRow {
  double parameters;
  int64_t tp, pp;
  int64_t cp_when_long;
};
constexpr std::array<TableRow, 4> kMegatronTable = {TableRow{7e9, 1, 1, 1}, TableRow{13e9, 2, 1, 1},
                                                    TableRow{70e9, 4, 4, 1}, TableRow{405e9, 8, 8, 2}};
constexpr double kSizeTolerance = 0.25;

const TableRow* row_of(const spec::Job& job) {
  const auto size = static_cast<double>(job.model.num_parameters());
  for (const TableRow& row : kMegatronTable) {
    if (std::abs(size / row.parameters - 1) <= kSizeTolerance) return &row;
  }
  return nullptr;
}

bool states_fit(double parameters, const spec::Job& job) {
  return kBytesPerParameter * parameters <= kMemoryShare * job.cluster.gpu.memory_bytes;
}

Prescription axes(int64_t tp, int64_t pp, int64_t cp = 1) {
  Prescription prescription;
  prescription.fix.tp = tp;
  prescription.fix.pp = pp;
  prescription.fix.cp = cp;
  return prescription;
}

Prescription sharded(int zero) {
  Prescription prescription = axes(1, 1);
  prescription.fix.zero = zero;
  prescription.fix.hsdp = 0;
  return prescription;
}

// Pipelines of whole tensor-parallel nodes, the shortest first.
void add_pipelines_of_nodes(const spec::Job& job, std::vector<Prescription>& choices) {
  const int64_t node = std::min<int64_t>(job.cluster.gpus_per_node, job.num_gpus);
  for (const int64_t pp : search::divisors(job.num_gpus / node)) {
    if (pp > 1 && pp <= job.model.num_layers) choices.push_back(axes(node, pp));
  }
}

std::vector<int> sorted_zero_stages(const spec::Job& job) {
  std::vector<int> stages = job.engine.zero_stages;
  std::sort(stages.begin(), stages.end());
  return stages;
}

}  // namespace

std::string why_not_in_megatron_table(const spec::Job& job) {
  const TableRow* row = row_of(job);
  if (row == nullptr) return "the guides have no model of about this size";
  const int64_t ranks = row->tp * row->pp;
  if (job.num_gpus % ranks != 0) return fmt::format("the guides use at least {} GPUs for this size", ranks);
  return "";
}

std::vector<Prescription> megatron_table(const spec::Job& job, cost::Pricer&) {
  const TableRow* row = row_of(job);
  if (row == nullptr) return {};
  const bool is_long = job.sequence_length > kLongSequence && job.engine.has_context_parallel;
  return {axes(row->tp, row->pp, is_long ? row->cp_when_long : 1)};
}

std::vector<Prescription> bigscience(const spec::Job& job, cost::Pricer&) {
  const auto layer = static_cast<double>(job.model.layer_parameters());
  const auto all = static_cast<double>(job.model.num_parameters());
  int64_t tp = 1;
  while (!states_fit(layer / static_cast<double>(tp), job) && tp * 2 <= job.cluster.gpus_per_node &&
         job.num_gpus % (tp * 2) == 0) {
    tp *= 2;
  }
  std::vector<Prescription> choices;
  for (const int64_t pp : search::divisors(job.num_gpus / tp)) {
    if (pp <= job.model.num_layers && states_fit(all / static_cast<double>(tp * pp), job)) {
      choices.push_back(axes(tp, pp));
    }
  }
  return choices;
}

std::vector<Prescription> hugging_face(const spec::Job& job, cost::Pricer&) {
  std::vector<Prescription> choices;
  const std::vector<int> stages = sorted_zero_stages(job);
  if (job.num_gpus <= job.cluster.gpus_per_node) {
    for (const int stage : stages) choices.push_back(sharded(stage));
    Prescription pipeline, tensor;
    pipeline.fix.tp = pipeline.fix.cp = 1;
    tensor.fix.pp = tensor.fix.cp = 1;
    if (job.num_gpus > 1) choices.insert(choices.end(), {pipeline, tensor});
    return choices;
  }
  const bool is_fast = job.cluster.inter_bytes_per_second_per_gpu >= kFastLinkBytesPerSecond;
  if (is_fast) choices.push_back(sharded(stages.back()));
  add_pipelines_of_nodes(job, choices);
  return choices;
}

std::vector<Prescription> fill_the_node(const spec::Job& job, cost::Pricer& pricer) {
  const auto found = search::default_layout(job, pricer);
  if (!found) return {};
  Prescription prescription = axes(found->layout.tp, found->layout.pp);
  prescription.fix.mb = found->layout.mb;
  prescription.fix.checkpointing = found->layout.checkpointing;
  prescription.fix.full_layers = found->layout.full_layers;
  prescription.exact = found->layout;
  return {prescription};
}

}  // namespace layline::study
