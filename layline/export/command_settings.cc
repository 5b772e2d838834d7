#include "layline/export/command_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "layline/base/error.h"
#include "layline/base/number.h"
#include "layline/layout/layout_text.h"

namespace layline::exporting {
namespace {

constexpr std::array<std::string_view, 5> kTellTale = {"--num-layers", "--tensor-model-parallel-size",
                                                       "--micro-batch-size", "--pipeline-model-parallel-size",
                                                       "--hidden-size"};
constexpr std::array<std::string_view, 7> kPrograms = {"python",    "python3", "torchrun",     "srun",
                                                       "deepspeed", "bash",    "layline-train"};
constexpr std::array<std::string_view, 5> kPrinting = {"echo", "printf", "cat", "#", "log"};

std::string with_dashes(std::string word) {
  std::replace(word.begin(), word.end(), '_', '-');
  return word;
}

bool is_tell_tale(const std::string& word) {
  const std::string name = with_dashes(word.substr(0, word.find('=')));
  return std::find(kTellTale.begin(), kTellTale.end(), name) != kTellTale.end();
}

bool is_option(const std::string& word) {
  const size_t first = word.starts_with("--") ? 2 : 1;
  if (word.size() <= first || word[0] != '-') return false;
  return std::isalnum(static_cast<unsigned char>(word[first])) != 0 &&
         (first == 2 || std::isalpha(static_cast<unsigned char>(word[first])) != 0);
}

// Where an option's values end, since none of them is one.
bool is_program(const std::string& word) {
  const std::string name = word.substr(word.rfind('/') + 1);
  return word.ends_with(".py") || std::find(kPrograms.begin(), kPrograms.end(), name) != kPrograms.end();
}

bool prints(const ShellCommand& command) {
  return std::find(kPrinting.begin(), kPrinting.end(), command.words.front()) != kPrinting.end();
}

// A whole command in one word, as for bash -c "…".
bool is_command_text(const std::string& word) {
  return word.find(' ') != std::string::npos &&
         std::any_of(kTellTale.begin(), kTellTale.end(),
                     [&](std::string_view name) { return word.find(name) != std::string::npos; });
}

std::vector<std::string> words_of(const ShellCommand& command, const std::string& where) {
  std::vector<std::string> words;
  for (const std::string& word : command.words) {
    if (!is_command_text(word)) {
      words.push_back(word);
      continue;
    }
    for (const ShellCommand& inner : read_shell(word, where).commands) {
      words.insert(words.end(), inner.words.begin(), inner.words.end());
    }
  }
  return words;
}

Settings settings_of(const std::vector<std::string>& words, const std::string& where) {
  Settings options(where);
  for (size_t i = 0; i < words.size(); ++i) {
    if (!is_option(words[i])) continue;
    const size_t equals = words[i].find('=');
    std::string key = words[i].substr(0, equals);
    key = with_dashes(key.substr(key.find_first_not_of('-')));
    Value value;
    if (equals != std::string::npos) value.text = words[i].substr(equals + 1);
    while (equals == std::string::npos && i + 1 < words.size() && !is_option(words[i + 1]) &&
           !is_program(words[i + 1])) {
      value.text += (value.text.empty() ? "" : " ") + words[++i];
    }
    if (value.text.empty()) value.text = "true";
    options.set(key, value);
  }
  return options;
}

// A count that is a number; 0 for "auto", "$SLURM_NNODES" and the like.
int64_t count_of(Settings& options, const std::string& key) {
  const std::optional<std::string> text = options.text(key);
  const std::optional<int64_t> count = text ? base::to_whole_number(*text) : std::nullopt;
  return count && *count >= 1 && *count <= layout::kMaxAxis ? *count : 0;
}

int64_t count_of(const std::map<std::string, std::string>& values, const std::string& key) {
  const auto found = values.find(key);
  if (found == values.end()) return 0;
  // "gpu:a100:8", as of --gres.
  const size_t colon = found->second.rfind(':');
  const std::string text = colon == std::string::npos ? found->second : found->second.substr(colon + 1);
  const std::optional<int64_t> count = base::to_whole_number(text);
  return count && *count >= 1 && *count <= layout::kMaxAxis ? *count : 0;
}

}  // namespace

Settings command_settings(const ShellScript& script, const std::string& where) {
  for (const ShellCommand& command : script.commands) {
    if (prints(command)) continue;
    const std::string place = fmt::format("{}:{}", where, command.line);
    const std::vector<std::string> words = words_of(command, place);
    if (std::any_of(words.begin(), words.end(), is_tell_tale)) return settings_of(words, place);
  }
  throw base::InputError(
      where, "no command with Megatron's options; want one with --num-layers or --tensor-model-parallel-size");
}

int64_t world_size(Settings& options, const ShellScript& script) {
  options.pass_over({"node-rank", "master-addr", "master-port", "rdzv-id", "rdzv-backend", "rdzv-endpoint",
                     "standalone", "kill-on-bad-exit", "hostfile", "no-python", "m", "u", "c", "l"});
  const std::string nodes_key = options.first_of({"nnodes", "num-nodes", "nodes", "N"});
  const std::string ranks_key = options.first_of({"nproc-per-node", "num-gpus", "gpus-per-node", "ntasks-per-node"});
  int64_t nodes = count_of(options, nodes_key), ranks = count_of(options, ranks_key);
  const bool says_ranks = options.has(ranks_key);
  for (const char* key : {"gpus-per-node", "ntasks-per-node", "gres"}) {
    if (!says_ranks && ranks == 0) ranks = count_of(script.directives, key);
  }
  // torchrun without --nnodes is one node; srun without --nodes is on those of the job.
  const bool is_of_srun = ranks_key == "gpus-per-node" || ranks_key == "ntasks-per-node";
  const bool is_one_node = says_ranks && !(is_of_srun && script.directives.contains("nodes"));
  if (!options.has(nodes_key)) nodes = is_one_node ? 1 : count_of(script.directives, "nodes");
  if (nodes > 0 && ranks > 0) return nodes * ranks;
  return count_of(script.variables, "WORLD_SIZE");
}

}  // namespace layline::exporting
