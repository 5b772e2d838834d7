#include "layline/trainer/metrics/read_metrics.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "layline/base/file.h"

namespace layline::trainer::metrics {
namespace {

using nlohmann::json;

template <typename Number>
void read(const json& row, const char* key, Number& number) {
  const auto found = row.find(key);
  if (found != row.end() && found->is_number()) number = found->get<Number>();
}

// A list of objects with a number for each name.
template <typename Number>
void read(const json& row, const char* key, std::vector<std::map<std::string, Number>>& stages) {
  const auto found = row.find(key);
  if (found == row.end() || !found->is_array()) return;
  for (const json& stage : *found) {
    std::map<std::string, Number>& numbers = stages.emplace_back();
    for (auto entry = stage.begin(); stage.is_object() && entry != stage.end(); ++entry) {
      if (entry->is_number()) numbers[entry.key()] = entry->get<Number>();
    }
  }
}

std::optional<StepRecord> record_of(std::string_view line) {
  const json row = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!row.is_object()) return std::nullopt;
  StepRecord record;
  read(row, "step", record.step);
  if (record.step < 1) return std::nullopt;
  read(row, "loss", record.loss);
  read(row, "grad_norm", record.grad_norm);
  read(row, "learning_rate", record.learning_rate);
  read(row, "tokens", record.tokens);
  read(row, "step_seconds", record.step_seconds);
  read(row, "tokens_per_second", record.tokens_per_second);
  read(row, "peak_memory_bytes", record.peak_memory_bytes);
  double mfu = -1;
  read(row, "mfu", mfu);
  if (mfu >= 0) record.mfu = mfu;
  read(row, "seconds_by_stage", record.seconds_by_stage);
  read(row, "memory_bytes_by_stage", record.memory_bytes_by_stage);
  read(row, "num_parameters", record.num_parameters);
  if (const auto layout = row.find("layout"); layout != row.end() && layout->is_string()) {
    record.layout = layout->get<std::string>();
  }
  const auto stages = row.find("peak_memory_bytes_by_stage");
  if (stages == row.end() || !stages->is_array()) return record;
  for (const json& bytes : *stages) {
    if (bytes.is_number()) record.peak_memory_bytes_by_stage.push_back(bytes.get<int64_t>());
  }
  return record;
}

}  // namespace

std::vector<StepRecord> read_metrics(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  const std::string text = base::read_file(path);
  std::map<int64_t, StepRecord> steps;
  for (size_t start = 0; start < text.size();) {
    const size_t end = text.find('\n', start);
    if (end == std::string::npos) break;
    if (auto record = record_of(std::string_view(text).substr(start, end - start))) {
      if (record->step == 1) steps.clear();  // another run begins
      steps[record->step] = std::move(*record);
    }
    start = end + 1;
  }
  std::vector<StepRecord> records;
  for (auto& [step, record] : steps) records.push_back(std::move(record));
  return records;
}

}  // namespace layline::trainer::metrics
