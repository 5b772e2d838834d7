// Training systems side by side: the best published run of each model under one MFU formula.
#pragma once

#include "layline/report/builders.h"

namespace layline::report {

// Whose runs these are: "MPT (llm-foundry)", "NeMo"; from the record's source, else its engine.
std::string system_of(const ReportRun& run);

// Runs that can stand for their system: of at least a billion parameters, complete pre-training steps, with a time.
RunList comparable(const RunList& runs);

// The best run of each system, model, sequence length and kind of GPU, as dataset "systems".
Section systems(const RunList& runs, Datasets& datasets);

}  // namespace layline::report
