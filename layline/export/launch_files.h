// From a layout to the files that start it in another framework.
//
//   const LaunchFiles files = launch_files(job, layout, Framework::kMegatron, {.launcher = Launcher::kSlurm});
//   for (const LaunchFile& file : files.files) …   // configuration, then the script that starts it
//
// Every axis of the layout is written in the framework's own words or refused: base::InputError with the axis and the
// reason. Batch arithmetic is checked by that framework's rules. Steps, learning rate and data are stand-ins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layline/export/framework.h"
#include "layline/layout/layout.h"
#include "layline/spec/job.h"

namespace layline::exporting {

enum class Launcher { kSlurm, kTorchrun };

inline constexpr std::array<std::string_view, 2> kLauncherNames = {"slurm", "torchrun"};

struct ExportOptions {
  Launcher launcher = Launcher::kSlurm;
  int64_t steps = 100;
  std::string cluster = "";  // as the user names it, for RUN.json; "": the cluster's own name
};

struct LaunchFile {
  std::string name;  // without a folder
  std::string text;
  bool is_script = false;
};

struct LaunchFiles {
  std::vector<LaunchFile> files;
  std::string command;             // that starts it, in the folder of the files
  std::vector<std::string> notes;  // what differs from the planner's picture, or has to be filled in
};

// Of a layout that is legal for the job (and its engine, which need not be the framework's).
LaunchFiles launch_files(const spec::Job& job, const layout::Layout& layout, Framework framework,
                         const ExportOptions& options);

}  // namespace layline::exporting
