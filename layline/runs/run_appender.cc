#include "layline/runs/run_appender.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/runs/csv.h"

namespace layline::runs {
namespace {

std::string reason() { return std::strerror(errno); }

void sync(int file_descriptor, const std::string& path) {
  if (::fsync(file_descriptor) != 0) throw base::RunError(path, fmt::format("cannot write: {}", reason()));
}

}  // namespace

int64_t complete_rows_bytes(std::string_view text) {
  bool quoted = false;
  size_t end = 0;
  for (size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == '\n' && !quoted) end = i + 1;
  }
  return static_cast<int64_t>(end);
}

RunAppender::RunAppender(std::string path, Columns columns) : path_(std::move(path)), header_(run_columns()) {
  if (columns == Columns::kRunsAndPredictions) {
    header_.insert(header_.end(), prediction_columns().begin(), prediction_columns().end());
  }
  open_and_lock();
  try {
    recover();
  } catch (...) {
    ::close(file_descriptor_);
    throw;
  }
}

RunAppender::~RunAppender() { ::close(file_descriptor_); }

void RunAppender::open_and_lock() {
  file_descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_descriptor_ < 0) throw base::InputError(path_, fmt::format("cannot write: {}", reason()));
  if (::flock(file_descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const bool is_in_use = errno == EWOULDBLOCK;
  const std::string why = is_in_use ? "another process is appending to it" : "cannot lock: " + reason();
  ::close(file_descriptor_);
  throw base::InputError(path_, why);
}

void RunAppender::recover() {
  const std::string text = base::read_file(path_);
  const std::string header = format_csv_row(header_);
  const int64_t end = complete_rows_bytes(text);
  const std::string_view tail = std::string_view(text).substr(static_cast<size_t>(end));
  const bool is_torn_header = end == 0 && header.starts_with(tail.substr(0, tail.find('\0')));
  if (end == 0 && !is_torn_header) throw base::InputError(path_, "is no file of run records; nothing was changed");
  if (end > 0) {
    const std::string_view rows = std::string_view(text).substr(0, static_cast<size_t>(end));
    RunTable table = parse_runs(rows, path_);
    if (parse_csv(rows, path_).header != header_) {
      throw base::InputError(path_, "has other columns than run records have; append to another file");
    }
    existing_ = std::move(table.records);
  }
  num_cut_bytes_ = static_cast<int64_t>(tail.size());
  if (num_cut_bytes_ > 0) cut_to(end);
  size_bytes_ = end;
  if (end > 0) return;
  write_row(header);
  base::sync_folder_of(path_);
}

void RunAppender::append(const RunRecord& record, const std::vector<std::string>& predictions) {
  std::vector<std::string> fields = to_fields(record);
  fields.insert(fields.end(), predictions.begin(), predictions.end());
  assert(fields.size() == header_.size());
  write_row(format_csv_row(fields));
}

void RunAppender::write_row(const std::string& row) {
  try {
    base::write_fully(file_descriptor_, row, path_);
    sync(file_descriptor_, path_);
  } catch (const base::RunError&) {
    // The error at hand matters more than one from cutting; a torn row that stays is cut on the next opening.
    [[maybe_unused]] const int ignored = ::ftruncate(file_descriptor_, size_bytes_);
    throw;
  }
  size_bytes_ += static_cast<int64_t>(row.size());
}

void RunAppender::cut_to(int64_t size_bytes) {
  if (::ftruncate(file_descriptor_, size_bytes) != 0) {
    throw base::RunError(path_, fmt::format("cannot cut its torn last line: {}", reason()));
  }
  sync(file_descriptor_, path_);
}

}  // namespace layline::runs
