#include "layline/trainer/metrics/metrics_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "layline/base/error.h"
#include "layline/base/file.h"

namespace layline::trainer::metrics {
namespace {

constexpr off_t kLongestRowBytes = 1 << 16;
constexpr std::string_view kRowStart = "{\"step\":";

std::string reason() { return std::strerror(errno); }

// What follows the last line end, as far as a row can be long.
std::string unfinished_row(int file_descriptor, off_t size) {
  std::string tail(static_cast<size_t>(std::min(size, kLongestRowBytes)), '\0');
  const off_t start = size - static_cast<off_t>(tail.size());
  if (::pread(file_descriptor, tail.data(), tail.size(), start) != static_cast<ssize_t>(tail.size())) return "";
  const size_t line_end = tail.rfind('\n');
  return line_end == std::string::npos ? tail : tail.substr(line_end + 1);
}

bool is_regular(int file_descriptor) {
  struct stat status{};
  return ::fstat(file_descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

// Until the file is closed. File systems without locks go without.
void lock(int file_descriptor, const std::string& path) {
  if (!is_regular(file_descriptor) || ::flock(file_descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  throw base::InputError(path, "another run writes to it; give each a file of its own");
}

// Only a row of ours is cut; other text that lacks its line end gets one.
void mend_end(int file_descriptor, const std::string& path) {
  struct stat status{};
  if (::fstat(file_descriptor, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) return;
  const std::string tail = unfinished_row(file_descriptor, status.st_size);
  if (tail.empty()) return;
  const bool is_torn_row = tail.starts_with(kRowStart) && !nlohmann::json::accept(tail);
  if (!is_torn_row) return base::write_fully(file_descriptor, "\n", path);
  if (::ftruncate(file_descriptor, status.st_size - static_cast<off_t>(tail.size())) != 0) {
    throw base::RunError(path, fmt::format("cannot cut its unfinished last row: {}", reason()));
  }
}

}  // namespace

std::string to_json_line(const StepRecord& record) {
  nlohmann::ordered_json json;
  json["step"] = record.step;
  if (record.steps > 0) json["steps"] = record.steps;
  json["loss"] = record.loss;
  json["grad_norm"] = record.grad_norm;
  json["learning_rate"] = record.learning_rate;
  json["tokens"] = record.tokens;
  json["step_seconds"] = record.step_seconds;
  json["tokens_per_second"] = record.tokens_per_second;
  json["mfu"] = record.mfu ? nlohmann::ordered_json(*record.mfu) : nlohmann::ordered_json();
  json["peak_memory_bytes"] = record.peak_memory_bytes;
  json["peak_memory_bytes_by_stage"] = record.peak_memory_bytes_by_stage;
  if (!record.seconds_by_stage.empty()) json["seconds_by_stage"] = record.seconds_by_stage;
  if (!record.memory_bytes_by_stage.empty()) json["memory_bytes_by_stage"] = record.memory_bytes_by_stage;
  if (!record.layout.empty()) json["layout"] = record.layout;
  if (record.num_parameters > 0) json["num_parameters"] = record.num_parameters;
  if (record.checkpoint_seconds) json["checkpoint_seconds"] = *record.checkpoint_seconds;
  if (record.validation_loss) json["validation_loss"] = *record.validation_loss;
  return json.dump();
}

MetricsWriter::MetricsWriter(std::string path) : path_(std::move(path)) {
  file_descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  // Pipes and terminals may be writable only.
  if (file_descriptor_ < 0) file_descriptor_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file_descriptor_ < 0) throw base::InputError(path_, fmt::format("cannot write: {}", reason()));
  try {
    lock(file_descriptor_, path_);
    mend_end(file_descriptor_, path_);
  } catch (...) {
    ::close(file_descriptor_);
    throw;
  }
}

MetricsWriter::~MetricsWriter() { ::close(file_descriptor_); }

void MetricsWriter::write(const StepRecord& record) {
  base::write_fully(file_descriptor_, to_json_line(record) + "\n", path_);
}

}  // namespace layline::trainer::metrics
