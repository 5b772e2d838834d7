#include "layline/study/reason.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "layline/base/units.h"

namespace layline::study {
namespace {

constexpr size_t kMaxTerms = 3;
constexpr double kNegligible = 0.01;  // of a step

std::string words_of(std::string_view name) {
  std::string words(name);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

// The largest terms that `sign` says have grown or shrunk.
std::vector<std::string> largest(const std::vector<search::Difference>& seconds, double sign, double least,
                                 const char* word) {
  std::vector<std::pair<double, std::string_view>> terms;
  for (const search::Difference& term : seconds) {
    const double grown = sign * (term.second - term.first);
    if (grown >= least) terms.emplace_back(grown, term.what);
  }
  std::stable_sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (terms.size() > kMaxTerms) terms.resize(kMaxTerms);
  std::vector<std::string> texts;
  for (const auto& [grown, name] : terms) {
    texts.push_back(fmt::format("{} {} {}", base::format_seconds(grown), word, words_of(name)));
  }
  return texts;
}

}  // namespace

std::string difference_text(const std::vector<search::Difference>& seconds, double step_seconds) {
  const double least = kNegligible * step_seconds;
  const std::vector<std::string> more = largest(seconds, 1, least, "more"), less = largest(seconds, -1, least, "less");
  std::string text = fmt::format("{}", fmt::join(more, ", "));
  if (!less.empty()) text += fmt::format("{}{}", text.empty() ? "" : "; ", fmt::join(less, ", "));
  return text.empty() ? "no term differs by 1 % of a step" : text;
}

std::string miss_text(const spec::Job& job, const search::PricedLayout& miss) {
  const search::Explanation explanation = search::explain(job, miss.layout);
  const memory::StageMemory& stage = explanation.stages[explanation.fullest_stage].memory;
  std::vector<std::pair<double, std::string_view>> terms;
  for (size_t i = 0; i < memory::kNumTerms; ++i) terms.emplace_back(stage.bytes[i], memory::kTermNames[i]);
  std::stable_sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> largest_terms;
  for (size_t i = 0; i < kMaxTerms; ++i) {
    largest_terms.push_back(fmt::format("{} {}", words_of(terms[i].second), base::format_gib(terms[i].first)));
  }
  return fmt::format("{} GiB more than there is ({})",
                     base::format_gib(miss.price.peak_memory_bytes - miss.price.capacity_bytes),
                     fmt::join(largest_terms, ", "));
}

}  // namespace layline::study
