// The options of the command that starts a Megatron in a script. Private to this folder.
#pragma once

#include <string>
#include <vector>

#include "layline/export/readers.h"
#include "layline/export/settings.h"
#include "layline/export/shell.h"

namespace layline::exporting {

// Options by name without dashes before, with dashes inside ("micro-batch-size"); flags are "true", lists are joined by
// blanks. Throws base::InputError when no command has any of Megatron's options.
Settings command_settings(const ShellScript& script, const std::string& where);

// Nodes times processes a node, from torchrun's, deepspeed's or srun's options, or #SBATCH lines; 0 when they do not
// say.
int64_t world_size(Settings& options, const ShellScript& script);

// The model of Megatron's options; nothing without --num-layers. knows_vocab is set.
void read_model_options(Framework framework, Settings& options, Draft& draft);

}  // namespace layline::exporting
