// The flags that say what is trained, on what, by which engine; shared by the commands that price layouts.
#pragma once

#include <cstdint>
#include <string>

#include "layline/layout/layout.h"
#include "layline/spec/job.h"

namespace CLI {
class App;
}

namespace layline::app {

struct JobFlags {
  std::string model, cluster, engine = "layline", precision = "bf16", calibration;
  int64_t gpus = 0, global_batch = 0, sequence_length = 0;
};

// The first five are required, unless something else may say what they say.
void add_job_flags(CLI::App& command, JobFlags& flags, bool required = true);

// Throws base::InputError.
spec::Job make_job(const JobFlags& flags);

// "Llama 13B (14.0 B parameters) · 64 × A100 80 GB · 2,048 sequences of 2,048 tokens a step · bf16".
std::string job_title(const spec::Job& job);

// "calibrated on 346 runs, step time ± 8 %" or "uncalibrated, step time ± 50 %".
std::string calibration_title(const spec::Job& job);

// A layout that is legal for the job; `flag` names its text in errors. Throws base::InputError.
layout::Layout legal_layout(const spec::Job& job, const std::string& text, const char* flag);

// The flags again, for commands that are suggested.
std::string job_command_line(const JobFlags& flags);

}  // namespace layline::app
