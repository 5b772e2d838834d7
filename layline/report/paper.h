// The figures and tables of Hagemann et al., "Efficient Parallelization Layouts for Large-Scale Distributed Model
// Training" (arXiv 2311.05610), rebuilt from published runs with the model's prediction laid over each:
// `layline report paper`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "layline/report/figure.h"
#include "layline/runs/run_record.h"

namespace layline::report {

// A sweep that the paper describes.
struct PaperSweep {
  std::string model;  // as records name it: "Llama-13B"
  int64_t sequence_length = 0;
  bool is_about_sequence_parallelism = false;
};
const std::vector<PaperSweep>& paper_sweeps();

// Whether the record is one of the paper's runs, by its source.
bool is_of_paper(const runs::RunRecord& record);

struct PaperOptions {
  std::function<void(size_t done, size_t total)> progress = {};  // sweeps refitted; may be empty
};

// Tables with runs of the paper are predicted leaving each sweep out, all others with the shipped calibrations. Sweeps
// that the tables lack are named. Throws base::InputError when there is no run of the paper.
Report paper_report(const std::vector<runs::RunTable>& tables, const PaperOptions& options);

}  // namespace layline::report
