#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/layline/command.h"
#include "apps/layline/supervisor.h"
#include "apps/layline/terminal.h"
#include "layline/base/error.h"
#include "layline/base/units.h"
#include "layline/trainer/formats/megatron_tokens.h"
#include "layline/trainer/formats/open_tokens.h"
#include "layline/trainer/tokenize/build_data.h"

namespace layline::app {
namespace {

namespace formats = trainer::formats;
namespace tokenize = trainer::tokenize;
using formats::TokenType;
using nlohmann::ordered_json;

const std::map<std::string, TokenType> kTypes = {
    {"u8", TokenType::kU8}, {"u16", TokenType::kU16}, {"i32", TokenType::kI32}, {"i64", TokenType::kI64}};

std::string name_of(TokenType type) {
  constexpr std::array kNames = {"u8", "i8", "i16", "i32", "i64", "u16"};
  return kNames[static_cast<size_t>(type)];
}

std::string bytes_text(int64_t bytes) { return base::format_bytes(static_cast<double>(bytes)); }

struct BuildFlags {
  tokenize::BuildOptions options;
  std::string type;
  bool json = false;
};

void print_built(const BuildFlags& flags, const tokenize::BuildResult& result, double seconds) {
  const auto built = static_cast<double>(result.input_bytes - result.resumed_bytes);
  if (flags.json) {
    const ordered_json json = {{"schema_version", 1},
                               {"path", flags.options.output},
                               {"dtype", name_of(result.type)},
                               {"num_documents", result.num_documents},
                               {"num_empty_documents", result.num_empty_documents},
                               {"num_tokens", result.num_tokens},
                               {"size_bytes", result.num_bytes},
                               {"input_bytes", result.input_bytes},
                               {"resumed_bytes", result.resumed_bytes},
                               {"seconds", seconds},
                               {"input_bytes_per_second", built / seconds}};
    return print(json.dump(2) + "\n");
  }
  std::string text = fmt::format("{0}.bin, {0}.idx: {1} documents, {2} tokens ({3}, {4})", flags.options.output,
                                 base::format_count(result.num_documents), base::format_count(result.num_tokens),
                                 name_of(result.type), bytes_text(result.num_bytes));
  if (result.num_empty_documents > 0) {
    text += fmt::format("; {} empty ones left out", base::format_count(result.num_empty_documents));
  }
  text += fmt::format("\n{} of text in {} ({:.0f} MB a second)", bytes_text(result.input_bytes - result.resumed_bytes),
                      base::format_seconds(seconds), built / seconds / 1e6);
  if (result.resumed_bytes > 0) text += fmt::format(", {} had been done before", bytes_text(result.resumed_bytes));
  print(text + fmt::format("\nNext:  \"data\": {{\"train\": \"{}\"}} in RUN.json\n", flags.options.output));
}

void run_build(BuildFlags& flags) {
  const SignalQueue signals;  // before there are threads
  if (!flags.type.empty()) flags.options.type = kTypes.at(flags.type);
  const auto start = std::chrono::steady_clock::now();
  int signal = 0;
  const auto is_cancelled = [&] {
    if (const int next = signals.next(); next == SIGINT || next == SIGTERM) signal = next;
    return signal != 0;
  };
  const std::unique_ptr<base::ProgressSink> sink = progress_sink();
  const tokenize::BuildResult result = tokenize::build_data(flags.options, sink.get(), is_cancelled);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (result.is_complete) return print_built(flags, result, seconds);
  fmt::print(stderr, "interrupted: {} of text are done; the same command goes on from there\n",
             bytes_text(result.input_bytes));
  throw Exit{kSignalled + signal};
}

void add_build(CLI::App& parent) {
  auto flags = std::make_shared<BuildFlags>();
  CLI::App* command = parent.add_subcommand("build", "Text or JSON Lines to a Megatron data set (.bin and .idx)");
  tokenize::BuildOptions& options = flags->options;
  command
      ->add_option("inputs", options.inputs,
                   "files, in order: .jsonl, .ndjson and .json have a document a line, any other is one document")
      ->required()
      ->type_name("FILE");
  command->add_option("--output", options.output, "prefix of the .bin and .idx to write")
      ->required()
      ->type_name("PREFIX");
  command->add_option("--tokenizer", options.tokenizer, "bytes, or the file of a SentencePiece model")
      ->type_name("bytes|FILE")
      ->capture_default_str();
  command->add_option("--json-key", options.json_key, "where the text is in a line of JSON")->capture_default_str();
  command->add_option("--dtype", flags->type, "of a token; default: the smallest of u8, u16 and i32 that holds all ids")
      ->check(CLI::IsMember({"u8", "u16", "i32", "i64"}));
  command->add_flag("--append-eod", options.appends_end_of_document,
                    "put the model's end of sentence behind each document (256 behind bytes)");
  command->add_flag("--json", flags->json, "print JSON");
  command->footer(
      "Example: layline data build corpus.jsonl --tokenizer tokenizer.model --append-eod --output corpus\n"
      "Interrupted or killed, the same command goes on where it was.");
  command->callback([flags] { run_build(*flags); });
}

struct LookFlags {
  std::string path;
  int64_t vocabulary = 0;
  bool json = false;
};

ordered_json json_of(const formats::TokenSource& source) {
  ordered_json json = {{"schema_version", 1}, {"path", source.path()}, {"num_tokens", source.num_tokens()}};
  if (const auto* megatron = dynamic_cast<const formats::MegatronTokens*>(&source)) {
    const formats::MegatronIndex& index = megatron->index();
    json.update({{"dtype", name_of(index.type)},
                 {"num_documents", index.num_documents},
                 {"num_empty_documents", index.num_empty_documents},
                 {"num_sequences", index.num_sequences},
                 {"size_bytes", index.num_tokens * formats::num_bytes(index.type)}});
  }
  return json;
}

std::string text_of(const formats::TokenSource& source) {
  const auto* megatron = dynamic_cast<const formats::MegatronTokens*>(&source);
  if (megatron == nullptr) {
    return fmt::format("{}: text, {} tokens of a byte each\n", source.path(), base::format_count(source.num_tokens()));
  }
  const formats::MegatronIndex& index = megatron->index();
  const auto row = [](const char* name, const std::string& text) { return fmt::format("  {:<10} {}\n", name, text); };
  std::string text = source.path() + "\n";
  text += row("tokens", fmt::format("{} of {}, {}", base::format_count(index.num_tokens), name_of(index.type),
                                    bytes_text(index.num_tokens * formats::num_bytes(index.type))));
  text += row("documents",
              fmt::format("{} in {} sequences, {} empty", base::format_count(index.num_documents),
                          base::format_count(index.num_sequences), base::format_count(index.num_empty_documents)));
  if (index.num_documents > 0) {
    text += row("mean", fmt::format("{:.1f} tokens a document",
                                    static_cast<double>(index.num_tokens) / static_cast<double>(index.num_documents)));
  }
  return text;
}

void run_info(const LookFlags& flags) {
  const auto source = formats::open_tokens(flags.path);
  print(flags.json ? json_of(*source).dump(2) + "\n" : text_of(*source));
}

// Reads all tokens; an id that is out of range is an error that says where.
void run_check(const LookFlags& flags) {
  constexpr int64_t kChunkTokens = 1 << 20;
  const auto source = formats::open_tokens(flags.path);  // checks the index
  const std::unique_ptr<base::ProgressSink> sink = progress_sink();
  base::Progress progress(sink.get(), "checking tokens, Mi", source->num_tokens() / kChunkTokens);
  const int64_t vocabulary = flags.vocabulary > 0 ? flags.vocabulary : source->largest_possible_token() + 1;
  std::vector<int64_t> tokens;
  int64_t largest = -1;
  for (int64_t offset = 0; offset < source->num_tokens(); offset += kChunkTokens) {
    tokens.resize(static_cast<size_t>(std::min(kChunkTokens, source->num_tokens() - offset)));
    source->read(offset, tokens);
    formats::check_vocabulary(*source, offset, tokens, vocabulary);
    largest = std::max(largest, *std::max_element(tokens.begin(), tokens.end()));
    progress.advance();
  }
  if (flags.json) {
    ordered_json json = json_of(*source);
    json["largest_token"] = largest;
    return print(json.dump(2) + "\n");
  }
  print(fmt::format("{}: good: {} tokens, the largest id is {}\n", source->path(),
                    base::format_count(source->num_tokens()), largest));
}

CLI::App* add_look(CLI::App& parent, const char* name, const char* help, const std::shared_ptr<LookFlags>& flags) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->add_option("path", flags->path, "prefix of a .bin and an .idx, or a text file")->required();
  command->add_flag("--json", flags->json, "print JSON");
  return command;
}

}  // namespace

void add_data(CLI::App& app) {
  CLI::App* command = app.add_subcommand("data", "Make data sets of tokens, look at them, and check them");
  command->require_subcommand(1);
  add_build(*command);
  auto flags = std::make_shared<LookFlags>();
  add_look(*command, "info", "Tokens, documents and sizes", flags)->callback([flags] { run_info(*flags); });
  CLI::App* check = add_look(*command, "check", "Read the index and every token", flags);
  check->add_option("--vocab-size", flags->vocabulary, "ids are below; default: what the file's type holds")
      ->check(CLI::PositiveNumber);
  check->callback([flags] { run_check(*flags); });
  command->footer("Example: layline data build corpus.jsonl --output corpus");
}

}  // namespace layline::app
