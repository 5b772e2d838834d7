#include "apps/layline/report_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "apps/layline/terminal.h"
#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/base/units.h"
#include "layline/report/sample.h"
#include "layline/report/writers.h"

namespace layline::app {
namespace {

namespace fs = std::filesystem;

struct File {
  std::string name, text;
  int64_t num_rows = 0;
};

void check_rows(const std::vector<File>& files, int64_t num_rows) {
  if (num_rows <= kMaxReportRows) return;
  const auto largest = std::max_element(files.begin(), files.end(),
                                        [](const File& a, const File& b) { return a.num_rows < b.num_rows; });
  throw base::InputError(largest->name,
                         fmt::format("{} runs in all, and a report holds {}: split the file by model or sweep, or take "
                                     "an even sample with --sample {}",
                                     base::format_count(num_rows), base::format_count(kMaxReportRows), kMaxReportRows));
}

}  // namespace

ReportTables read_report_tables(const std::vector<std::string>& names, int64_t sample) {
  std::vector<File> files;
  int64_t num_rows = 0;
  for (const std::string& name : names) {
    files.push_back({.name = name, .text = base::read_file(name)});
    files.back().num_rows = report::count_csv_rows(files.back().text);
    num_rows += files.back().num_rows;
  }
  if (sample <= 0) check_rows(files, num_rows);
  ReportTables read;
  const bool is_sampled = sample > 0 && num_rows > sample;
  for (File& file : files) {
    if (is_sampled) {
      const double share = static_cast<double>(file.num_rows) / static_cast<double>(num_rows);
      file.text = report::sample_csv_rows(
          file.text, std::max<int64_t>(1, static_cast<int64_t>(share * static_cast<double>(sample))));
    }
    read.tables.push_back(runs::parse_runs(file.text, file.name));
    file.text.clear();
  }
  if (is_sampled) {
    read.sampling = fmt::format("An even sample of {} of {} runs: the best of a job may not be among them.",
                                base::format_count(sample), base::format_count(num_rows));
  }
  return read;
}

std::string report_format(const std::string& output) {
  const std::string extension = fs::path(output).extension().string();
  if (extension == ".md") return "markdown";
  if (extension == ".json") return "json";
  if (extension == ".txt") return "text";
  if (output.empty()) return "text";
  if (extension.empty() || extension == ".html" || extension == ".htm") return "html";
  throw base::InputError(output, fmt::format("no format ends in {}; want .html, .md, .json or .txt", extension));
}

std::string written_report(const report::Report& report, const std::string& format) {
  if (format == "html") return report::to_html(report);
  if (format == "markdown") return report::to_markdown(report);
  if (format == "json") return report::to_json_text(report);
  return report::to_text(report, text_style());
}

std::vector<std::string> csv_files_of(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".csv") files.push_back(entry.path().string());
  }
  if (error) throw base::InputError(folder, "cannot be read as a folder");
  if (files.empty()) throw base::InputError(folder, "has no .csv file");
  std::sort(files.begin(), files.end());
  return files;
}

std::string find_published_data() {
  std::error_code error;
  std::vector<fs::path> places = {fs::current_path(error)};
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = program.parent_path(); !folder.empty() && folder != folder.parent_path();
       folder = folder.parent_path()) {
    places.push_back(folder);
  }
  for (const fs::path& place : places) {
    const fs::path data = place / "data" / "published";
    if (fs::is_directory(data, error)) return data.string();
  }
  throw base::InputError("report paper",
                         "no data/published here or above the program; say where it is with --data DIR");
}

}  // namespace layline::app
