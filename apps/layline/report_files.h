// The files that `layline report` reads.
#pragma once

#include <string>
#include <vector>

#include "layline/report/figure.h"
#include "layline/runs/run_record.h"

namespace layline::app {

inline constexpr int64_t kMaxReportRows = 20'000;

struct ReportTables {
  std::vector<runs::RunTable> tables;
  std::string sampling;  // a sentence, when not all rows were taken
};

// All rows of the files, or `sample` of them spread evenly when there are more (0: no sampling). Throws
// base::InputError when there are more than a report holds.
ReportTables read_report_tables(const std::vector<std::string>& files, int64_t sample);

// The format that the name of an output asks for: "markdown", "json", "text" or "html"; text for no name, html
// for one without an ending. Throws base::InputError for any other ending.
std::string report_format(const std::string& output);
std::string written_report(const report::Report& report, const std::string& format);

// Every *.csv of the folder, by name. Throws base::InputError when there is none.
std::vector<std::string> csv_files_of(const std::string& folder);

// data/published of the current folder, of the program's or of those above it. Throws base::InputError when there is
// none.
std::string find_published_data();

}  // namespace layline::app
