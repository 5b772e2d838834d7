#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "apps/layline/command.h"
#include "layline/base/error.h"

namespace layline::app {
namespace {

std::vector<std::string> known_flags(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The first argument that looks like a flag and is none of `known`.
std::string unknown_flag(const std::vector<std::string>& known, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument(argv[i]);
    const std::string name = argument.substr(0, argument.find('='));
    if (name.rfind("--", 0) == 0 && std::find(known.begin(), known.end(), name) == known.end()) return name;
  }
  return "";
}

}  // namespace

std::string explain_parse_error(const CLI::App& app, const std::string& message, int argc, char** argv) {
  std::string line = message.substr(0, message.find('\n'));
  const auto chosen = app.get_subcommands();
  if (chosen.empty()) {
    std::vector<std::string> commands;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
      commands.push_back(command->get_name());
    }
    if (argc > 1 && argv[1][0] != '-') return base::unknown_name_message("command", argv[1], commands);
    return line + "; see layline --help";
  }
  const std::vector<std::string> known = known_flags(*chosen.front());
  const std::string flag = unknown_flag(known, argc, argv);
  const std::string command = chosen.front()->get_name();
  if (flag.empty()) return fmt::format("layline {}: {}; see layline {} --help", command, line, command);
  return fmt::format("layline {}: {}", command, base::unknown_name_message("flag", flag, known));
}

}  // namespace layline::app
