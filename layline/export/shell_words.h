// Words of a shell script, with variables put in. Private to this folder.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace layline::exporting {

// A place in a script; knows its line.
class ShellCursor {
 public:
  ShellCursor(std::string_view text, std::string where, int line = 1)
      : text_(text), where_(std::move(where)), line_(line) {}

  bool done() const { return at_ >= text_.size(); }
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  char next();
  bool take(std::string_view word);  // skips it when it is next
  std::string_view rest() const { return text_.substr(at_); }
  std::string line_end();                           // up to the end of the line, which stays
  std::string until_closed(char open, char close);  // what is before the closing character, quotes minded
  int line() const { return line_; }
  const std::string& where() const { return where_; }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string_view text_;
  std::string where_;
  size_t at_ = 0;
  int line_ = 1;
};

struct ShellVariables {
  std::map<std::string, std::string> texts;
  std::map<std::string, std::vector<std::string>> arrays;
  size_t num_bytes = 0;  // that expansions have made so far
  int depth = 0;         // of expansions within expansions
};

// The length of the NAME that the text begins with, 0: none.
size_t name_length(std::string_view text);

// Appends the words of the next word of the script: none, one, or several where an expansion has blanks (unless
// `whole`) or is a whole array. False when the cursor is at no word.
bool read_word(ShellCursor& cursor, ShellVariables& variables, bool whole, std::vector<std::string>& words);

// A text as within double quotes.
std::string expand_text(std::string_view text, const ShellCursor& place, ShellVariables& variables);

// Of +, -, *, /, % and parentheses over whole numbers and variables; nothing where one is not known.
std::optional<int64_t> arithmetic(std::string_view expression, const ShellVariables& variables);

}  // namespace layline::exporting
