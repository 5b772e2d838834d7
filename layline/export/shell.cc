#include "layline/export/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "layline/export/shell_words.h"

namespace layline::exporting {
namespace {

template <size_t N>
bool is_one_of(const std::string& word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 14> kKeywords = {"if", "then", "elif", "else", "fi",   "while", "until",
                                                        "do", "done", "time", "!",    "exec", "eval",  "nohup"};
constexpr std::array<std::string_view, 5> kOpening = {"if", "while", "until", "for", "case"};
constexpr std::array<std::string_view, 3> kClosing = {"fi", "done", "esac"};
constexpr std::array<std::string_view, 5> kDeclaring = {"export", "declare", "local", "readonly", "typeset"};

// A here-document that begins after the line.
struct HereDocument {
  std::string end, file;
  bool expands = true, drops_tabs = false;
};

class ScriptReader {
 public:
  ScriptReader(std::string_view text, const std::string& where) : cursor_(text, where) {}

  ShellScript read() {
    while (!cursor_.done()) {
      const char c = cursor_.peek();
      if (c == '\n') {
        end_line();
      } else if (c == '#') {
        comment();
      } else if (cursor_.take("&&") || cursor_.take("||")) {
        is_conditional_ = true;
      } else if (c == '\0' || std::string_view(" \t\r;&|(){}").find(c) != std::string_view::npos) {
        cursor_.next();
      } else if (!cursor_.take("\\\n")) {
        command();
      }
    }
    script_.variables = variables_.texts;
    return std::move(script_);
  }

 private:
  void end_line();
  void comment();
  void directive(const std::string& line);
  void command();
  bool at_end_of_command() const;
  bool redirection();
  bool assignment();
  void read_array(std::vector<std::string>& items);
  void set(const std::string& name, const std::string& text);
  void note_options(const std::string& name, const std::string& text);
  void keep(std::vector<std::string> words, int line);
  bool only_keywords(const std::vector<std::string>& words) const;

  ShellCursor cursor_;
  ShellVariables variables_;
  ShellScript script_;
  std::vector<HereDocument> pending_;
  std::string output_file_;      // of the command being read
  int depth_ = 0;                // of branches and loops
  bool is_conditional_ = false;  // the next command is after && or ||
};

void ScriptReader::end_line() {
  cursor_.next();
  for (const HereDocument& document : pending_) {
    std::string text;
    while (true) {
      if (cursor_.done()) cursor_.fail(fmt::format("the here-document does not end with {}", document.end));
      std::string line = cursor_.line_end();
      if (!cursor_.done()) cursor_.next();
      if (document.drops_tabs) line.erase(0, std::min(line.find_first_not_of('\t'), line.size()));
      if (line == document.end) break;
      text += line + "\n";
    }
    if (document.file.empty()) continue;
    script_.documents[document.file] = document.expands ? expand_text(text, cursor_, variables_) : text;
  }
  pending_.clear();
}

void ScriptReader::comment() {
  const std::string line = cursor_.line_end();
  constexpr std::string_view kSbatch = "#SBATCH";
  if (line.starts_with(kSbatch)) directive(line.substr(kSbatch.size()));
}

// "--nodes=8", "--nodes 8" or "-N 8", and the variables that Slurm sets from them.
void ScriptReader::directive(const std::string& line) {
  ShellCursor words_of(line, cursor_.where(), cursor_.line());
  std::vector<std::string> words;
  while (!words_of.done()) {
    if (words_of.peek() == '#') break;
    if (!read_word(words_of, variables_, true, words)) words_of.next();
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    std::string key = words[i].substr(0, equals);
    key.erase(0, std::min(key.find_first_not_of('-'), key.size()));
    const std::string value = equals != std::string::npos ? words[i].substr(equals + 1)
                              : i + 1 < words.size()      ? words[++i]
                                                          : "";
    if (key == "N") key = "nodes";
    if (key == "n") key = "ntasks";
    script_.directives[key] = value;
    if (key == "nodes") variables_.texts["SLURM_NNODES"] = variables_.texts["SLURM_JOB_NUM_NODES"] = value;
    if (key == "ntasks") variables_.texts["SLURM_NTASKS"] = value;
    if (key == "ntasks-per-node") variables_.texts["SLURM_NTASKS_PER_NODE"] = value;
    if (key == "gpus-per-node")
      variables_.texts["SLURM_GPUS_PER_NODE"] = variables_.texts["SLURM_GPUS_ON_NODE"] = value;
  }
}

bool ScriptReader::at_end_of_command() const {
  const char c = cursor_.peek();
  if (c == '&' && cursor_.peek(1) == '>') return false;
  return cursor_.done() || c == '\0' || std::string_view("\n;&|()").find(c) != std::string_view::npos;
}

// Takes one, with its target.
bool ScriptReader::redirection() {
  const auto digits = static_cast<size_t>(cursor_.peek() >= '0' && cursor_.peek() <= '9');
  const char sign = cursor_.peek(digits);
  const bool is_both = cursor_.peek() == '&' && cursor_.peek(1) == '>';
  if (sign != '<' && sign != '>' && !is_both) return false;
  for (size_t i = 0; i < digits; ++i) cursor_.next();
  const bool is_output = is_both || sign == '>';
  HereDocument document;
  const bool is_here_text = cursor_.take("<<<");
  const bool is_document = !is_here_text && cursor_.take("<<");
  if (is_document) document.drops_tabs = cursor_.take("-");
  while (std::string_view("<>&|").find(cursor_.peek()) != std::string_view::npos && !cursor_.done()) cursor_.next();
  while (cursor_.peek() == ' ' || cursor_.peek() == '\t') cursor_.next();
  if (is_document) document.expands = std::string_view("'\"\\").find(cursor_.peek()) == std::string_view::npos;
  std::vector<std::string> target;
  read_word(cursor_, variables_, true, target);
  if (target.empty()) return true;
  if (is_document) {
    document.end = target.front();
    pending_.push_back(document);
  } else if (is_output && digits == 0) {
    output_file_ = target.front();
  }
  return true;
}

void ScriptReader::read_array(std::vector<std::string>& items) {
  while (!cursor_.take(")")) {
    if (cursor_.done()) cursor_.fail("a ( does not end");
    if (cursor_.peek() == '#') {
      cursor_.line_end();
    } else if (!cursor_.take("\\\n") && !read_word(cursor_, variables_, false, items)) {
      cursor_.next();
    }
  }
}

void ScriptReader::set(const std::string& name, const std::string& text) {
  const auto before = variables_.texts.find(name);
  if (depth_ > 0 && before != variables_.texts.end() && before->second != text) {
    script_.notes.push_back(fmt::format("line {}: {} is set in a branch or a loop, \"{}\" is taken and not \"{}\"",
                                        cursor_.line(), name, text.substr(0, 40), before->second.substr(0, 40)));
  }
  if (before == variables_.texts.end() && text.starts_with("--")) note_options(name, text);
  variables_.arrays.erase(name);
  variables_.texts[name] = text;
}

// Options that a branch or a loop adds are taken whether or not it would be gone through.
void ScriptReader::note_options(const std::string& name, const std::string& text) {
  if (depth_ == 0) return;
  script_.notes.push_back(fmt::format("line {}: {} gets options in a branch or a loop, {} is taken", cursor_.line(),
                                      name, text.substr(0, 40)));
}

bool ScriptReader::assignment() {
  const size_t length = name_length(cursor_.rest());
  const bool appends = cursor_.peek(length) == '+' && cursor_.peek(length + 1) == '=';
  if (length == 0 || (!appends && cursor_.peek(length) != '=')) return false;
  std::string name;
  for (size_t i = 0; i < length; ++i) name += cursor_.next();
  cursor_.take(appends ? "+=" : "=");
  if (cursor_.take("(")) {
    std::vector<std::string> items;
    if (appends) items = variables_.arrays[name];
    const size_t before = items.size();
    read_array(items);
    for (size_t i = before; i < items.size(); ++i) {
      if (items[i].starts_with("--")) {
        note_options(name, items[i]);
        break;
      }
    }
    variables_.arrays[name] = std::move(items);
    return true;
  }
  std::vector<std::string> words;
  read_word(cursor_, variables_, true, words);
  const std::string text = words.empty() ? "" : words.front();
  const auto before = variables_.texts.find(name);
  set(name, appends && before != variables_.texts.end() ? before->second + text : text);
  return true;
}

bool ScriptReader::only_keywords(const std::vector<std::string>& words) const {
  return std::all_of(words.begin(), words.end(), [](const std::string& word) { return is_one_of(word, kKeywords); });
}

void ScriptReader::command() {
  const int line = cursor_.line();
  const int is_branch = std::exchange(is_conditional_, false) ? 1 : 0;
  depth_ += is_branch;
  std::vector<std::string> words;
  output_file_.clear();
  const size_t first_document = pending_.size();
  while (true) {
    while (cursor_.peek() == ' ' || cursor_.peek() == '\t' || cursor_.peek() == '\r') cursor_.next();
    if (cursor_.take("\\\n") || cursor_.take("\\\r\n")) continue;
    if (at_end_of_command()) break;
    if (cursor_.peek() == '#') {
      cursor_.line_end();
      break;
    }
    if (redirection()) continue;
    const bool may_assign = only_keywords(words) || is_one_of(words.front(), kDeclaring);
    if (may_assign && assignment()) continue;
    if (!read_word(cursor_, variables_, false, words)) cursor_.next();
  }
  for (size_t i = first_document; i < pending_.size(); ++i) pending_[i].file = output_file_;
  depth_ -= is_branch;
  keep(std::move(words), line);
}

void ScriptReader::keep(std::vector<std::string> words, int line) {
  if (!words.empty() && is_one_of(words.front(), kOpening)) ++depth_;
  if (!words.empty() && is_one_of(words.front(), kClosing)) depth_ = std::max(0, depth_ - 1);
  if (words.size() > 3 && words[0] == "for" && words[2] == "in") {
    set(words[1], words[3]);
    if (words.size() > 4) {
      script_.notes.push_back(fmt::format("line {}: of the loop over {} the first value, \"{}\", is taken", line,
                                          words[1], words[3].substr(0, 40)));
    }
    return;
  }
  const auto first =
      std::find_if(words.begin(), words.end(), [](const std::string& word) { return !is_one_of(word, kKeywords); });
  words.erase(words.begin(), first);
  if (!words.empty()) script_.commands.push_back({std::move(words), line});
}

}  // namespace

ShellScript read_shell(std::string_view text, const std::string& where) { return ScriptReader(text, where).read(); }

}  // namespace layline::exporting
