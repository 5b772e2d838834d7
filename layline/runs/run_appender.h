// Run records written row by row while a sweep goes on, so that a crash at any moment loses at most the row that was
// being written.
//
//   RunAppender runs("runs.csv");                       // creates it, or goes on where it ended
//   for (const RunRecord& done : runs.existing()) …     // what need not be run again
//   runs.append(record);                                // on disk when it returns
//
// A torn last line (kill -9, power failure) is cut off on opening. Two appenders on one file are refused. Rows may
// carry what was predicted for them, in prediction_columns().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layline/runs/run_record.h"

namespace layline::runs {

class RunAppender {
 public:
  enum class Columns { kRuns, kRunsAndPredictions };

  // Throws base::InputError: the file cannot be written, is in use by another appender, has another header than
  // run_columns() (and prediction_columns() where they are asked for), or holds a malformed row; base::RunError when
  // the disk fails.
  explicit RunAppender(std::string path, Columns columns = Columns::kRuns);
  RunAppender(const RunAppender&) = delete;
  RunAppender& operator=(const RunAppender&) = delete;
  ~RunAppender();

  // Rows that were there on opening.
  const std::vector<RunRecord>& existing() const { return existing_; }

  // Bytes of a torn last line that opening cut off; 0 normally.
  int64_t num_cut_bytes() const { return num_cut_bytes_; }

  // Writes and syncs one row; predictions: as many fields as prediction_columns() where the file has those, else none.
  // Throws base::RunError; the file then ends where it ended before.
  void append(const RunRecord& record, const std::vector<std::string>& predictions = {});

 private:
  void open_and_lock();
  void recover();
  void write_row(const std::string& row);
  void cut_to(int64_t size_bytes);

  std::string path_;
  std::vector<std::string> header_;
  int file_descriptor_ = -1;
  int64_t size_bytes_ = 0;
  int64_t num_cut_bytes_ = 0;
  std::vector<RunRecord> existing_;
};

// Length of the part of a CSV text that ends with the last complete row: a line end outside quotes before the first
// NUL byte (which a power failure leaves).
int64_t complete_rows_bytes(std::string_view text);

}  // namespace layline::runs
