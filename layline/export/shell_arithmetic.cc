#include <cctype>

#include "layline/base/number.h"
#include "layline/export/shell_words.h"

namespace layline::exporting {
namespace {

constexpr int kMaxDepth = 32;

// A number, or nothing once something was not known.
using Number = std::optional<int64_t>;

class Reader {
 public:
  Reader(std::string_view text, const ShellVariables& variables) : text_(text), variables_(variables) {}

  Number whole() {
    const Number value = sum();
    skip_blanks();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  bool take(char symbol) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != symbol) return false;
    ++at_;
    return true;
  }

  Number sum() {
    Number left = product();
    while (left) {
      if (take('+')) {
        left = combine('+', left, product());
      } else if (take('-')) {
        left = combine('-', left, product());
      } else {
        break;
      }
    }
    return left;
  }

  Number product() {
    Number left = factor();
    while (left) {
      if (take('*')) {
        left = combine('*', left, factor());
      } else if (take('/')) {
        left = combine('/', left, factor());
      } else if (take('%')) {
        left = combine('%', left, factor());
      } else {
        break;
      }
    }
    return left;
  }

  static Number combine(char operation, Number left, Number right) {
    if (!left || !right) return std::nullopt;
    int64_t result = 0;
    switch (operation) {
      case '+':
        return __builtin_add_overflow(*left, *right, &result) ? std::nullopt : Number(result);
      case '-':
        return __builtin_sub_overflow(*left, *right, &result) ? std::nullopt : Number(result);
      case '*':
        return __builtin_mul_overflow(*left, *right, &result) ? std::nullopt : Number(result);
      default:
        if (*right <= 0) return std::nullopt;  // by zero, or INT64_MIN / -1
        return operation == '/' ? *left / *right : *left % *right;
    }
  }

  Number factor() {
    if (++depth_ > kMaxDepth) return std::nullopt;
    const Number value = atom();
    --depth_;
    return value;
  }

  Number atom() {
    if (take('-')) return combine('-', 0, factor());
    if (take('(')) {
      const Number inside = sum();
      return take(')') ? inside : std::nullopt;
    }
    skip_blanks();
    const size_t length = name_length(text_.substr(at_));
    if (length > 0) return variable(length);
    const size_t start = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return base::to_whole_number(text_.substr(start, at_ - start));
  }

  Number variable(size_t length) {
    const auto found = variables_.texts.find(std::string(text_.substr(at_, length)));
    at_ += length;
    return found == variables_.texts.end() ? std::nullopt : base::to_whole_number(found->second);
  }

  std::string_view text_;
  const ShellVariables& variables_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<int64_t> arithmetic(std::string_view expression, const ShellVariables& variables) {
  return Reader(expression, variables).whole();
}

}  // namespace layline::exporting
