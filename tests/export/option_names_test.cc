// Every name that is written is one that the framework has: data/NAME.txt has the published lists, with their versions.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "layline/base/error.h"
#include "layline/export/documents.h"
#include "layline/export/shell.h"
#include "tests/export/draws.h"

namespace layline::exporting {
namespace {

// The first line of a list is a comment with its source; a name a line follows.
std::set<std::string> names_in(const std::string& list) {
  std::ifstream in(std::string(LAYLINE_SOURCE_DIR) + "/tests/export/data/" + list);
  std::set<std::string> names;
  std::string line;
  while (std::getline(in, line)) {
    if (!line.empty() && line.front() != '#') names.insert(line);
  }
  EXPECT_GT(names.size(), 20u) << list;
  return names;
}

// Options of the array ARGS, as they are written.
std::set<std::string> options_in(const LaunchFiles& files) {
  std::set<std::string> options;
  const ShellScript script = read_shell(files.files.back().text, "script");
  bool is_program_seen = false;
  for (const std::string& word : script.commands.back().words) {
    if (word.ends_with(".py")) is_program_seen = true;
    if (is_program_seen && word.starts_with("--")) options.insert(word.substr(0, word.find('=')));
  }
  return options;
}

std::set<std::string> keys_in(Settings settings) {
  std::set<std::string> keys;
  for (const std::string& line : settings.ignored()) keys.insert(line.substr(0, line.find(' ')));
  return keys;
}

std::set<std::string> names_written(Framework framework, const LaunchFiles& files) {
  const std::string& config = files.files.front().text;
  switch (framework) {
    case Framework::kTorchtitan:
      return keys_in(toml_settings(config, "config"));
    case Framework::kDeepspeed: {
      std::set<std::string> names = keys_in(json_settings(config, "config"));
      names.merge(options_in(files));
      return names;
    }
    case Framework::kMegatron:
      return options_in(files);
    default:
      return keys_in(yaml_settings(config, "config"));
  }
}

class OptionNames : public testing::TestWithParam<Framework> {};

TEST_P(OptionNames, AreTheFrameworks) {
  const Framework framework = GetParam();
  const std::set<std::string> known = names_in(std::string(name_of(framework)) + ".txt");
  const spec::Engine engine = engine_for(framework);
  std::set<std::string> written;
  EXPECT_TRUE(rc::check([&] {
    const spec::Job job = any_job(engine);
    for (int i = 0; i < 20; ++i) {
      const Layout layout = any_legal_layout(job);
      try {
        written.merge(names_written(framework, launch_files(job, layout, framework, {})));
      } catch (const base::InputError&) {
        continue;
      }
    }
  }));
  EXPECT_GT(written.size(), 10u);
  for (const std::string& name : written) EXPECT_TRUE(known.contains(name)) << name;
}

INSTANTIATE_TEST_SUITE_P(Frameworks, OptionNames,
                         testing::Values(Framework::kMegatron, Framework::kNemo, Framework::kTorchtitan,
                                         Framework::kNanotron, Framework::kDeepspeed),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace layline::exporting
