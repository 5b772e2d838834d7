#include "layline/runs/run_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "layline/base/error.h"
#include "layline/base/number.h"

namespace layline::runs {
namespace {

constexpr std::array<std::string_view, 5> kStatusNames = {"ok", "oom", "fail", "unavailable", "timeout"};

constexpr int64_t kMaxCount = int64_t{1} << 40;
constexpr double kAboveZero = std::numeric_limits<double>::min();
constexpr double kMaxNumber = 1e15;

RunColumn text(std::string name, std::string RunRecord::* member, std::vector<std::string> allowed = {}) {
  return {std::move(name), TextColumn{member, std::move(allowed)}};
}
RunColumn whole(std::string name, std::optional<int64_t> RunRecord::* member, int64_t lower = 1,
                int64_t upper = kMaxCount) {
  return {std::move(name), WholeNumberColumn{member, lower, upper}};
}
RunColumn number(std::string name, std::optional<double> RunRecord::* member, double lower = kAboveZero) {
  return {std::move(name), NumberColumn{member, lower, kMaxNumber}};
}
RunColumn flag(std::string name, std::optional<bool> RunRecord::* member) {
  return {std::move(name), FlagColumn{member}};
}

std::vector<RunColumn> make_table() {
  using R = RunRecord;
  return {
      text("source", &R::source),
      text("source_location", &R::source_location),
      text("hardware", &R::hardware),
      whole("gpus_total", &R::gpus_total),
      whole("gpus_per_node", &R::gpus_per_node),
      text("interconnect", &R::interconnect),
      text("model", &R::model),
      whole("layers", &R::layers),
      whole("hidden", &R::hidden),
      whole("heads", &R::heads),
      whole("kv_heads", &R::kv_heads),
      whole("ffn_hidden", &R::ffn_hidden),
      whole("vocab", &R::vocab),
      whole("seq_len", &R::seq_len),
      whole("global_batch_sequences", &R::global_batch_sequences),
      whole("micro_batch_size", &R::micro_batch_size),
      whole("tp", &R::tp),
      flag("sp", &R::sp),
      whole("pp", &R::pp),
      whole("vpp", &R::vpp),
      whole("cp", &R::cp),
      whole("ep", &R::ep),
      whole("dp", &R::dp),
      whole("zero_stage", &R::zero_stage, 0, 3),
      text("recompute", &R::recompute, {"none", "selective", "full"}),
      text("attention_kernel", &R::attention_kernel),
      text("norm_kernel", &R::norm_kernel, {"fused", "unfused"}),
      text("precision", &R::precision),
      number("step_time_s", &R::step_time_s),
      number("tokens_per_s_per_gpu", &R::tokens_per_s_per_gpu),
      number("tflops_per_gpu", &R::tflops_per_gpu),
      number("mfu", &R::mfu, 0.0),
      number("peak_memory_GiB", &R::peak_memory_GiB),
      {"status", StatusColumn{&R::status}},
      text("engine", &R::engine),
      text("mlp", &R::mlp, {"swiglu", "gelu", "squared-relu"}),
      flag("tie_embeddings", &R::tie_embeddings),
      text("memory_rank", &R::memory_rank, {"first", "last", "max"}),
      text("memory_kind", &R::memory_kind, {"allocated", "reserved", "nvidia-smi"}),
      flag("scored", &R::scored),
      text("notes", &R::notes),
  };
}

template <typename Names>
[[noreturn]] void refuse_text(std::string_view text, const Names& allowed, const std::string& where) {
  throw base::InputError(where, fmt::format("found \"{}\", want one of: {}", text, fmt::join(allowed, ", ")));
}

struct Setter {
  RunRecord& record;
  std::string_view text;
  const std::string& where;

  void operator()(const TextColumn& column) const {
    const auto& allowed = column.allowed;
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
      refuse_text(text, allowed, where);
    }
    record.*column.member = text;
  }
  void operator()(const WholeNumberColumn& column) const {
    record.*column.member = base::parse_whole_number(text, column.lower, column.upper, where);
  }
  void operator()(const NumberColumn& column) const {
    record.*column.member = base::parse_number(text, column.lower, column.upper, where);
  }
  void operator()(const FlagColumn& column) const {
    record.*column.member = base::parse_whole_number(text, 0, 1, where) == 1;
  }
  void operator()(const StatusColumn& column) const {
    const auto found = std::find(kStatusNames.begin(), kStatusNames.end(), text);
    if (found == kStatusNames.end()) refuse_text(text, kStatusNames, where);
    record.*column.member = static_cast<RunStatus>(found - kStatusNames.begin());
  }
};

struct Printer {
  const RunRecord& record;

  std::string operator()(const TextColumn& column) const { return record.*column.member; }
  std::string operator()(const WholeNumberColumn& column) const { return number_text(record.*column.member); }
  std::string operator()(const NumberColumn& column) const { return number_text(record.*column.member); }
  std::string operator()(const FlagColumn& column) const {
    const std::optional<bool>& value = record.*column.member;
    return value ? (*value ? "1" : "0") : "";
  }
  std::string operator()(const StatusColumn& column) const {
    const std::optional<RunStatus>& value = record.*column.member;
    return value ? std::string(name_of(*value)) : "";
  }

  template <typename T>
  static std::string number_text(const std::optional<T>& value) {
    return value ? fmt::format("{}", *value) : "";
  }
};

}  // namespace

std::string_view name_of(RunStatus status) { return kStatusNames[static_cast<size_t>(status)]; }

const std::vector<RunColumn>& run_column_table() {
  static const std::vector<RunColumn> table = make_table();
  return table;
}

const RunColumn* find_run_column(std::string_view name) {
  for (const RunColumn& column : run_column_table()) {
    if (column.name == name) return &column;
  }
  return nullptr;
}

const std::vector<std::string>& required_run_columns() {
  static const std::vector<std::string> columns = {
      "hardware",         "layers", "hidden", "heads", "seq_len", "global_batch_sequences",
      "micro_batch_size", "tp",     "pp",     "status"};
  return columns;
}

void set_from_text(RunRecord& record, const RunColumn& column, std::string_view text, const std::string& where) {
  std::visit(Setter{record, text, where}, column.kind);
}

std::string to_text(const RunRecord& record, const RunColumn& column) {
  return std::visit(Printer{record}, column.kind);
}

}  // namespace layline::runs
