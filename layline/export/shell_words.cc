#include "layline/export/shell_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "layline/base/error.h"

namespace layline::exporting {
namespace {

constexpr size_t kMaxBytes = 64 << 20;
constexpr int kMaxDepth = 16;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool ends_word(char c) { return is_blank(c) || std::string_view(";&|<>()").find(c) != std::string_view::npos; }

// What a $ stands for: a text, or the words of an array.
struct Expansion {
  std::string text;
  std::vector<std::string> items;
  bool is_array = false;
};

// The word of ${NAME:-word}, whose quotes are no part of it.
std::string without_quotes(std::string_view word) {
  std::string text;
  char quote = '\0';
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '\\' && quote != '\'' && i + 1 < word.size()) {
      text += word[i];
      text += word[++i];
    } else if (quote == '\0' ? word[i] == '"' || word[i] == '\'' : word[i] == quote) {
      quote = quote == '\0' ? word[i] : '\0';
    } else {
      text += word[i];
    }
  }
  return text;
}

// Puts variables into one word.
class WordReader {
 public:
  WordReader(ShellCursor& cursor, ShellVariables& variables) : cursor_(cursor), variables_(variables) {}

  void read(bool whole, std::vector<std::string>& words);
  void read_quoted(char end);  // up to the quote, or the end of the text where it is '\0'
  std::string take_text() { return std::move(text_); }

 private:
  void append(const std::string& text) {
    text_ += text;
    has_word_ = true;
    variables_.num_bytes += text.size();
    if (variables_.num_bytes > kMaxBytes) cursor_.fail("expands to more than 64 MB");
  }
  void add(const Expansion& expansion, bool whole, bool splits, std::vector<std::string>& words);
  void add_split(const std::string& text, std::vector<std::string>& words);
  void flush(std::vector<std::string>& words) {
    if (has_word_) words.push_back(std::move(text_));
    text_.clear();
    has_word_ = false;
  }
  void read_single();
  Expansion dollar();
  Expansion parenthesis();
  Expansion brace();
  Expansion of_name(const std::string& name, const std::string& raw) const;
  Expansion with_default(const std::string& name, std::string_view operation, const std::string& raw);

  ShellCursor& cursor_;
  ShellVariables& variables_;
  std::string text_;
  bool has_word_ = false;
  std::vector<std::string>* words_ = nullptr;  // where arrays in double quotes put their words
};

void WordReader::read_single() {
  std::string inside;
  while (cursor_.peek() != '\'') {
    if (cursor_.done()) cursor_.fail("a ' does not end");
    inside += cursor_.next();
  }
  cursor_.next();
  append(inside);
}

void WordReader::add_split(const std::string& text, std::vector<std::string>& words) {
  for (const char c : text) {
    if (is_blank(c)) {
      flush(words);
    } else {
      append(std::string(1, c));
    }
  }
}

// An array in double quotes gives its words as they are (not whole, without splits); in none their parts.
void WordReader::add(const Expansion& expansion, bool whole, bool splits, std::vector<std::string>& words) {
  if (!expansion.is_array) return whole ? append(expansion.text) : add_split(expansion.text, words);
  for (size_t i = 0; i < expansion.items.size(); ++i) {
    if (i > 0 && whole) append(" ");
    if (i > 0 && !whole) flush(words);
    if (splits && !whole) {
      add_split(expansion.items[i], words);
    } else {
      append(expansion.items[i]);
    }
  }
}

void WordReader::read_quoted(char end) {
  bool is_empty_array = false;
  const size_t before = text_.size();
  while (cursor_.peek() != end || cursor_.done()) {
    if (cursor_.done()) {
      if (end == '\0') return;
      cursor_.fail("a \" does not end");
    }
    if (cursor_.take("\\\n")) continue;
    if (cursor_.peek() == '\\' && std::string_view("$`\"\\").find(cursor_.peek(1)) != std::string_view::npos) {
      cursor_.next();
      append(std::string(1, cursor_.next()));
    } else if (cursor_.peek() == '$') {
      const Expansion expansion = dollar();
      is_empty_array = expansion.is_array && expansion.items.empty();
      std::vector<std::string> none;
      add(expansion, words_ == nullptr || !expansion.is_array, false, words_ == nullptr ? none : *words_);
    } else {
      append(std::string(1, cursor_.next()));
    }
  }
  cursor_.next();
  // "$@" of nothing is no word, "" is one.
  if (!is_empty_array || text_.size() > before) has_word_ = true;
}

void WordReader::read(bool whole, std::vector<std::string>& words) {
  words_ = whole ? nullptr : &words;
  while (!cursor_.done() && !ends_word(cursor_.peek())) {
    if (cursor_.take("\\\n") || cursor_.take("\\\r\n")) continue;
    const char c = cursor_.peek();
    if (c == '\'') {
      cursor_.next();
      read_single();
    } else if (c == '"') {
      cursor_.next();
      read_quoted('"');
    } else if (c == '$') {
      add(dollar(), whole, true, words);
    } else if (c == '`') {
      cursor_.next();
      append("`" + cursor_.until_closed('\0', '`') + "`");
    } else {
      if (c == '\\') cursor_.next();
      append(std::string(1, cursor_.next()));
    }
  }
  flush(words);
}

Expansion WordReader::of_name(const std::string& name, const std::string& raw) const {
  const auto array = variables_.arrays.find(name);
  if (array != variables_.arrays.end()) {
    return {array->second.empty() ? "" : array->second.front(), {}, false};
  }
  const auto text = variables_.texts.find(name);
  return {text == variables_.texts.end() ? raw : text->second, {}, false};
}

Expansion WordReader::with_default(const std::string& name, std::string_view operation, const std::string& raw) {
  const bool minds_empty = operation.front() == ':';
  if (minds_empty) operation.remove_prefix(1);
  const auto found = variables_.texts.find(name);
  const bool is_set = found != variables_.texts.end() && !(minds_empty && found->second.empty());
  const std::string word = without_quotes(operation.substr(operation.empty() ? 0 : 1));
  switch (operation.empty() ? '\0' : operation.front()) {
    case '-':
    case '=':
      return {is_set ? found->second : expand_text(word, cursor_, variables_), {}, false};
    case '+':
      return {is_set ? expand_text(word, cursor_, variables_) : "", {}, false};
    case '?':
      return of_name(name, raw);
    default:
      return {raw, {}, false};
  }
}

Expansion WordReader::brace() {
  const std::string inside = cursor_.until_closed('{', '}');
  const std::string raw = "${" + inside + "}";
  const size_t length = std::max(name_length(inside), std::min(inside.find_first_not_of("0123456789"), inside.size()));
  const std::string name = inside.substr(0, length), rest = inside.substr(length);
  if (length == 0) return {raw, {}, false};
  if (rest.empty()) return of_name(name, raw);
  if (rest == "[@]" || rest == "[*]") {
    const auto array = variables_.arrays.find(name);
    if (array != variables_.arrays.end()) return {"", array->second, true};
    const Expansion text = of_name(name, raw);
    return {"", {text.text}, true};
  }
  return with_default(name, rest, raw);
}

Expansion WordReader::parenthesis() {
  const std::string inside = cursor_.until_closed('(', ')');
  const std::string raw = "$(" + inside + ")";
  if (inside.size() < 2 || inside.front() != '(' || inside.back() != ')') return {raw, {}, false};
  const std::string expression = expand_text(inside.substr(1, inside.size() - 2), cursor_, variables_);
  const std::optional<int64_t> value = arithmetic(expression, variables_);
  return {value ? fmt::format("{}", *value) : raw, {}, false};
}

Expansion WordReader::dollar() {
  cursor_.next();
  if (cursor_.take("(")) return parenthesis();
  if (cursor_.take("{")) return brace();
  const size_t length = name_length(cursor_.rest());
  if (length > 0) {
    std::string name;
    for (size_t i = 0; i < length; ++i) name += cursor_.next();
    return of_name(name, "$" + name);
  }
  if (cursor_.peek() == '@' || cursor_.peek() == '*') {
    cursor_.next();
    return {"", {}, true};
  }
  const bool is_special =
      std::isdigit(static_cast<unsigned char>(cursor_.peek())) != 0 ||
      (cursor_.peek() != '\0' && std::string_view("#?!$-").find(cursor_.peek()) != std::string_view::npos);
  return {is_special ? fmt::format("${}", cursor_.next()) : "$", {}, false};
}

}  // namespace

char ShellCursor::next() {
  const char c = peek();
  if (c == '\n') ++line_;
  if (!done()) ++at_;
  return c;
}

bool ShellCursor::take(std::string_view word) {
  if (!rest().starts_with(word)) return false;
  for (size_t i = 0; i < word.size(); ++i) next();
  return true;
}

std::string ShellCursor::line_end() {
  std::string line;
  while (!done() && peek() != '\n') line += next();
  return line;
}

std::string ShellCursor::until_closed(char open, char close) {
  std::string inside;
  int depth = 1;
  char quote = '\0';
  while (true) {
    if (done()) fail(fmt::format("a {} does not end", open == '\0' ? close : open));
    const char c = next();
    if (c == '\\' && quote != '\'') {
      inside += c;
      if (!done()) inside += next();
      continue;
    }
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == close) {
      if (--depth == 0) return inside;
    } else if (c == open) {
      ++depth;
    }
    inside += c;
  }
}

void ShellCursor::fail(const std::string& what) const {
  throw base::InputError(fmt::format("{}:{}", where_, line_), what);
}

size_t name_length(std::string_view text) {
  size_t length = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool fits = c == '_' || std::isalpha(byte) != 0 || (length > 0 && std::isdigit(byte) != 0);
    if (!fits || byte >= 0x80) break;
    ++length;
  }
  return length;
}

bool read_word(ShellCursor& cursor, ShellVariables& variables, bool whole, std::vector<std::string>& words) {
  if (cursor.done() || ends_word(cursor.peek())) return false;
  WordReader(cursor, variables).read(whole, words);
  return true;
}

std::string expand_text(std::string_view text, const ShellCursor& place, ShellVariables& variables) {
  if (++variables.depth > kMaxDepth) place.fail("has too many expansions within each other");
  ShellCursor cursor(text, place.where(), place.line());
  WordReader reader(cursor, variables);
  reader.read_quoted('\0');
  --variables.depth;
  return reader.take_text();
}

}  // namespace layline::exporting
