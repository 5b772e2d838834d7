// Sections that compare the best of each choice.
#include <fmt/format.h>

#include "layline/report/builders.h"
#include "layline/report/comparison.h"

namespace layline::report {

Section micro_batches(const RunList& runs) {
  return comparison_section(runs, {.id = "micro-batch",
                                   .title = "Micro-batch size",
                                   .chart_title = "Best MFU by micro-batch size",
                                   .choice = "micro-batch",
                                   .field = "mb",
                                   .choice_of = [](const ReportRun& run) { return fmt::format("{}", run.layout.mb); },
                                   .question = "the same micro-batch"});
}

Section checkpointing(const RunList& runs) {
  return comparison_section(runs, {.id = "checkpointing",
                                   .title = "Activation checkpointing",
                                   .chart_title = "Best MFU with and without activation checkpointing",
                                   .choice = "checkpointing",
                                   .field = "ckpt",
                                   .choice_of = checkpointing_text,
                                   .within_kernel = true,
                                   .question = "the same checkpointing"});
}

Section kernels(const RunList& runs) {
  return comparison_section(runs, {.id = "kernels",
                                   .title = "Kernels",
                                   .chart_title = "Best MFU by attention and norm kernel",
                                   .choice = "kernel",
                                   .field = "kernel",
                                   .choice_of = [](const ReportRun& run) { return run.kernel; },
                                   .question = "the same kernel"});
}

}  // namespace layline::report
