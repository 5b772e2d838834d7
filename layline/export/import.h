// From another framework's files to a layout and its job.
//
//   const Imported imported = import_layout(text, Framework::kMegatron, {.where = "train.sh"});
//   imported.layout, imported.model, imported.num_gpus …; imported.ignored lists what said nothing about the layout
//
// Scripts are read, not run (shell.h). Throws base::InputError with the place: no text, no command of the framework, a
// number that is missing or contradicts another, what the planner has no axis for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "layline/export/framework.h"
#include "layline/layout/layout.h"
#include "layline/spec/model.h"
#include "layline/spec/types.h"

namespace layline::exporting {

inline constexpr int64_t kMaxImportBytes = 4 << 20;

struct ImportOptions {
  std::string where = "file";  // names the text in messages
  // What the file does not say, or what is to be taken instead; 0 and "": as the file says.
  int64_t num_gpus = 0;
  int64_t global_batch = 0;
  int64_t sequence_length = 0;
  std::string model = "";
  // The text of another file that the first one names, relative to it; may be null, and return "" for none.
  std::function<std::string(const std::string& path)> open = nullptr;
};

struct Imported {
  Framework framework = Framework::kMegatron;
  spec::Model model;
  bool is_known_model = false;  // shipped, or given: model.name or the option names it
  int64_t num_gpus = 0;
  int64_t global_batch = 0;
  int64_t sequence_length = 0;
  spec::Precision precision = spec::Precision::kBf16;
  layout::Layout layout;             // legal or not; canonical for engine_of(framework)
  std::vector<std::string> ignored;  // settings that no layout depends on, "name value"
  std::vector<std::string> notes;    // what was assumed
};

// By the look of the text: a TOML, a JSON, a YAML or a script, and what it speaks of. Throws base::InputError where it
// looks like none.
Framework guess_framework(std::string_view text, const std::string& where);

Imported import_layout(std::string_view text, Framework framework, const ImportOptions& options);

}  // namespace layline::exporting
