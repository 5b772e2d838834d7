// Layline's own RUN.json.

#include <fmt/format.h>

#include "layline/base/error.h"
#include "layline/export/readers.h"
#include "layline/layout/layout_text.h"
#include "layline/spec/registry.h"
#include "layline/trainer/config/run_config.h"

namespace layline::exporting {

namespace config = trainer::config;

Draft read_layline(std::string_view text, const ImportOptions& options) {
  const config::RunConfig run = config::parse_run_config(text, options.where);
  if (run.layout == "auto") {
    throw base::InputError(options.where, "$.layout is \"auto\", the planner's first: `layline plan` shows it");
  }
  Draft draft;
  const spec::Engine engine = spec::get_engine(engine_of(Framework::kLayline));
  draft.layout = layout::parse_layout(
      run.layout,
      {.num_gpus = options.num_gpus, .defaults = layout::text_defaults(engine), .where = options.where + ": $.layout"});
  draft.dp = draft.layout.dp;
  draft.model = run.model;
  draft.global_batch = run.global_batch;
  draft.sequence_length = run.sequence_length;
  if (run.precision != config::Precision::kBf16) draft.precision = spec::Precision::kFp32;
  if (run.precision == config::Precision::kFp64) draft.notes.emplace_back("fp64 is priced as fp32");
  return draft;
}

}  // namespace layline::exporting
