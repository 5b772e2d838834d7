// One subcommand a file: flags → struct → library call → print. Each add_* hangs its command on the app and returns
// nothing; the command runs in its callback.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace layline::app {

void add_plan(CLI::App& app);
void add_explain(CLI::App& app);
void add_validate(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_specs(CLI::App& app);
void add_train(CLI::App& app);
void add_sweep(CLI::App& app);
void add_tune(CLI::App& app);
void add_bench(CLI::App& app);
void add_advise(CLI::App& app);
void add_study(CLI::App& app);
void add_export(CLI::App& app);
void add_import(CLI::App& app);
void add_report(CLI::App& app);
void add_checkpoint(CLI::App& app);
void add_data(CLI::App& app);
void add_watch(CLI::App& app);

// One line for a command line that does not parse: CLI11's message, and the nearest known flag or command to what was
// not known.
std::string explain_parse_error(const CLI::App& app, const std::string& message, int argc, char** argv);

// Exit codes other than success.
inline constexpr int kRunFailed = 1;
inline constexpr int kBadInput = 2;
inline constexpr int kNothingFits = 3;
inline constexpr int kSignalled = 128;  // plus the signal that ended it

// Thrown by a command that has said all it has to say; main() returns the code.
struct Exit {
  int code;
};

}  // namespace layline::app
