#include "layline/trainer/metrics/follow_metrics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "layline/base/error.h"
#include "layline/base/file_descriptor.h"

namespace layline::trainer::metrics {
namespace {

using nlohmann::json;

template <typename Number>
void read(const json& row, const char* key, Number& number) {
  const auto found = row.find(key);
  if (found != row.end() && found->is_number()) number = found->get<Number>();
}

// Written as null where it was not finite.
void read_or_nan(const json& row, const char* key, double& number) {
  read(row, key, number);
  if (row.contains(key) && row.at(key).is_null()) number = std::numeric_limits<double>::quiet_NaN();
}

void read(const json& row, const char* key, std::optional<double>& number) {
  double found = std::numeric_limits<double>::quiet_NaN();
  read(row, key, found);
  if (!std::isnan(found)) number = found;
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
  read_or_nan(row, "loss", record.loss);
  read_or_nan(row, "grad_norm", record.grad_norm);
  read(row, "learning_rate", record.learning_rate);
  read(row, "tokens", record.tokens);
  read(row, "step_seconds", record.step_seconds);
  read(row, "tokens_per_second", record.tokens_per_second);
  read(row, "peak_memory_bytes", record.peak_memory_bytes);
  double mfu = -1;
  read(row, "mfu", mfu);
  if (mfu >= 0) record.mfu = mfu;
  read(row, "steps", record.steps);
  read(row, "eta_seconds", record.eta_seconds);
  read(row, "validation_loss", record.validation_loss);
  read(row, "checkpoint_seconds", record.checkpoint_seconds);
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

MetricsFollower::MetricsFollower(std::string path, std::function<void(StepRecord)> on_row,
                                 std::function<void()> on_restart)
    : path_(std::move(path)), on_row_(std::move(on_row)), on_restart_(std::move(on_restart)) {}

bool MetricsFollower::poll() {
  const base::FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 && errno == ENOENT) return false;
  const auto fail = [this] {
    throw base::InputError(path_, fmt::format("cannot be read: {}", std::generic_category().message(errno)));
  };
  struct stat info = {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) fail();
  if (info.st_ino != file_ || info.st_size < offset_) {
    if (offset_ > 0 && on_restart_) on_restart_();
    file_ = info.st_ino;
    offset_ = 0;
    unfinished_.clear();
  }
  std::string buffer(1 << 20, '\0');
  while (true) {
    const ssize_t count = ::pread(file.get(), buffer.data(), buffer.size(), offset_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail();
    if (count == 0) return true;
    offset_ += count;
    unfinished_.append(buffer, 0, static_cast<size_t>(count));
    take_lines();
  }
}

void MetricsFollower::take_lines() {
  size_t start = 0;
  for (size_t end = unfinished_.find('\n'); end != std::string::npos; end = unfinished_.find('\n', start)) {
    if (auto record = record_of(std::string_view(unfinished_).substr(start, end - start))) on_row_(std::move(*record));
    start = end + 1;
  }
  unfinished_.erase(0, start);
}

}  // namespace layline::trainer::metrics
