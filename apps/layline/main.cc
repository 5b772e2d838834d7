#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "apps/layline/command.h"
#include "layline/base/error.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app("Layline finds the parallel layout that trains a large language model fastest, and says why.");
  app.set_version_flag("--version", "layline 0.1.0");
  app.require_subcommand(1);
  app.footer(
      "Start with: layline plan --model llama-13b --cluster a100-80gb --gpus 64 --global-batch 2048 "
      "--seq-len 2048 --engine aleph-scaling");
  layline::app::add_plan(app);
  layline::app::add_explain(app);
  layline::app::add_validate(app);
  layline::app::add_calibrate(app);
  layline::app::add_specs(app);
  layline::app::add_train(app);
  layline::app::add_sweep(app);
  layline::app::add_tune(app);
  layline::app::add_bench(app);
  layline::app::add_advise(app);
  layline::app::add_study(app);
  layline::app::add_export(app);
  layline::app::add_import(app);
  layline::app::add_report(app);
  layline::app::add_checkpoint(app);
  layline::app::add_data(app);
  layline::app::add_watch(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    throw layline::base::InputError(layline::app::explain_parse_error(app, e.what(), argc, argv));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const layline::app::Exit& exit) {
    return exit.code;
  } catch (const layline::base::InputError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return layline::app::kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return layline::app::kRunFailed;
  }
}
