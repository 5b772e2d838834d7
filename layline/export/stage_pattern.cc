#include "layline/export/stage_pattern.h"

#include <fmt/format.h>

#include "layline/base/error.h"

namespace layline::exporting {
namespace {

constexpr size_t kMaxSymbols = 100'000;

class Reader {
 public:
  Reader(std::string_view pattern, std::string_view where) : pattern_(pattern), where_(where) {}

  std::string symbols() {
    std::string all = sequence();
    if (at_ < pattern_.size()) fail("has a ) without its (");
    return all;
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw base::InputError(where_, fmt::format("\"{}\" {}; want stages like \"Et*3|t*4|t*3L\"", pattern_, what));
  }

 private:
  // Up to the end or a closing parenthesis.
  std::string sequence() {
    std::string all;
    while (at_ < pattern_.size() && pattern_[at_] != ')') {
      std::string item = one();
      const size_t times = repeats();
      if (all.size() + item.size() * times > kMaxSymbols) fail("has too many layers");
      for (size_t i = 0; i < times; ++i) all += item;
    }
    return all;
  }

  std::string one() {
    const char symbol = pattern_[at_++];
    if (symbol == '(') {
      if (++depth_ > 8) fail("has too many parentheses");
      std::string inside = sequence();
      if (at_ == pattern_.size()) fail("has a ( without its )");
      ++at_;
      --depth_;
      return inside;
    }
    if (symbol == ',' || symbol == ' ') return "";
    if (std::string_view("EtL|").find(symbol) == std::string_view::npos) {
      fail(fmt::format("has \"{}\", which is none of E, t, L and |", symbol));
    }
    return std::string(1, symbol);
  }

  size_t repeats() {
    if (at_ == pattern_.size() || pattern_[at_] != '*') return 1;
    ++at_;
    size_t times = 0, digits = 0;
    for (; at_ < pattern_.size() && pattern_[at_] >= '0' && pattern_[at_] <= '9'; ++at_, ++digits) {
      times = times * 10 + static_cast<size_t>(pattern_[at_] - '0');
      if (times > kMaxSymbols) fail("has too many layers");
    }
    if (digits == 0) fail("has a * without a number");
    return times;
  }

  std::string_view pattern_, where_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string stage_pattern(const std::vector<int64_t>& stage_layers) {
  std::string pattern = "E";
  for (size_t i = 0; i < stage_layers.size(); ++i) {
    if (i > 0) pattern += '|';
    pattern += stage_layers[i] == 1 ? "t" : fmt::format("t*{}", stage_layers[i]);
  }
  return pattern + "L";
}

std::vector<int64_t> parse_stage_pattern(std::string_view pattern, std::string_view where) {
  Reader reader(pattern, where);
  const std::string symbols = reader.symbols();
  if (symbols.empty() || symbols.front() != 'E') reader.fail("does not begin with E, the embedding");
  if (symbols.back() != 'L') reader.fail("does not end with L, the head");
  std::vector<int64_t> layers = {0};
  for (size_t i = 1; i + 1 < symbols.size(); ++i) {
    if (symbols[i] == 'E' || symbols[i] == 'L') reader.fail("has an embedding or a head in the middle");
    if (symbols[i] == '|') {
      layers.push_back(0);
    } else {
      ++layers.back();
    }
  }
  return layers;
}

}  // namespace layline::exporting
