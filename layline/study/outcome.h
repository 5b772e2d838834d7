// One rule at one job, by price: the fastest layout that follows it against the fastest that does not.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layline/search/explain.h"
#include "layline/search/search.h"
#include "layline/spec/job.h"
#include "layline/study/candidates.h"
#include "layline/study/rule.h"

namespace layline::study {

enum class Verdict { kHolds, kNoDifference, kBreaks, kDoesNotApply };
std::string_view name_of(Verdict verdict);  // "holds", "no difference", "breaks", "does not apply"

// Where, among the layouts of the job, it is the other way round.
struct Exception {
  std::string where;  // "pp1": the fastest of both sides among layouts with one stage
  double gain = 0;
  bool is_measured = false;
  search::PricedLayout follows, other;
  std::string reason;
};

// The fastest of both sides among the runs of this very job that the calibration holds.
struct MeasuredSides {
  search::PricedLayout follows, other;  // with measured_seconds
  double gain = 0;
};

struct Outcome {
  const Rule* rule = nullptr;
  // By what was measured, where both sides were, else by price.
  Verdict verdict = Verdict::kDoesNotApply;
  // Of predicted step times. Comparison: that of `other` over that of `follows` - 1. Prescription: that of the best
  // over that of `follows` - 1, never above 0. None where one of the two does not fit.
  std::optional<double> gain;
  std::optional<search::PricedLayout> follows;  // the fastest that follows it; the nearest miss where none fits
  std::optional<search::PricedLayout> other;  // the fastest that breaks it, of a prescription the best of all; likewise
  std::optional<MeasuredSides> measured;
  std::vector<search::Difference> seconds;  // by kind, `follows` first; where both are there
  std::vector<search::Difference> bytes;    // of the fullest stages
  std::string reason;                       // from these numbers; where it does not apply, why not
  std::vector<Exception> exceptions;        // only where asked for

  // The gain that the verdict rests on.
  std::optional<double> known_gain() const { return measured ? std::optional(measured->gain) : gain; }
};

// What the rules are judged by, at one job. `job` outlives it.
struct Judged {
  const spec::Job* job;
  Candidates candidates;
  search::PricedLayout best;                   // of all, by price
  std::vector<search::PricedLayout> measured;  // runs of this very job, the fastest first
  Surroundings around;
  bool is_restricted = false;  // to the candidates: no others are tried
};

// At least one candidate fits.
Judged judge(const spec::Job& job, Candidates candidates, bool is_restricted);

// `with_exceptions`: also where it is the other way round.
Outcome outcome_of(const Rule& rule, const Judged& judged, bool with_exceptions);

}  // namespace layline::study
