// A layout and its job out of another framework's file; shared by import and explain.
#pragma once

#include <string>

#include "apps/layline/job_flags.h"
#include "layline/export/import.h"

namespace layline::app {

struct ImportFlags {
  std::string file, from, script;
};

void add_import_flags(CLI::App& command, ImportFlags& flags, const char* file_option);

// The file, with what the job's flags say instead of it. Throws base::InputError.
exporting::Imported read_import(const ImportFlags& flags, const JobFlags& job);

// The job on --cluster, with the file's model and counts, by --engine or the engine that is like the framework. Throws
// base::InputError.
spec::Job make_job(const JobFlags& flags, const exporting::Imported& imported, bool has_engine);

// "layline explain …" of what was imported.
std::string explain_command(const ImportFlags& flags, const JobFlags& job, const exporting::Imported& imported);

}  // namespace layline::app
