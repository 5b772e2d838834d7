// What a shell script would run: its simple commands with variables put in, as far as a script tells without being run.
// Private to this folder.
//
// Known are comments, line continuations, quotes, NAME=value, arrays, ${NAME:-default}, $((arithmetic)), here-documents
// and #SBATCH lines. Nothing is executed: commands run in order whatever their conditions; $(…) and variables that the
// script does not set stay as they are written. Functions, loops and branches are gone through once.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace layline::exporting {

struct ShellCommand {
  std::vector<std::string> words;
  int line = 0;
};

struct ShellScript {
  std::vector<ShellCommand> commands;
  std::map<std::string, std::string> variables;   // last values
  std::map<std::string, std::string> documents;   // here-documents by the file they are written to
  std::map<std::string, std::string> directives;  // of #SBATCH lines: "nodes" → "8"
  std::vector<std::string> notes;                 // what a branch or a loop may have changed
};

// Throws base::InputError with file and line: quotes or parentheses that do not end, expansions beyond 64 MB.
ShellScript read_shell(std::string_view text, const std::string& where);

}  // namespace layline::exporting
