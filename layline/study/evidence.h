// What measured runs say of the rules.
//
//   for (const Evidence& e : evidence_from_runs({runs::read_runs("runs.csv")}, {})) … e.pairs, e.median_gain() …
//
// Only runs of one sweep are held against each other: the same source of runs, model, GPUs, batch, length, precision
// and engine. The two of a pair differ in nothing but what the rule speaks of (Rule::axes, Rule::is_pair), as the
// records name it; repeats of one layout count once, by their median. Beside that each sweep's fastest run that follows
// a rule is held against its fastest that does not, with the same kernels where the rule does not speak of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layline/layout/layout.h"
#include "layline/runs/run_record.h"
#include "layline/study/rule.h"

namespace layline::study {

struct MeasuredLayout {
  layout::Layout layout;
  std::string text;
  double seconds = 0;  // of a step
};

struct Pair {
  std::string sweep;
  MeasuredLayout follows, breaks;
  double gain = 0;  // breaks over follows - 1: above 0 the rule is right
};

struct Evidence {
  const Rule* rule = nullptr;
  // Of a comparison. For a prescription empty.
  std::vector<Pair> pairs;            // both ran; in the order of the sweeps
  int64_t num_only_follows_fits = 0;  // pairs of which the one that breaks the rule ran out of memory
  int64_t num_only_breaks_fits = 0;   // the other way round
  // One a sweep that ran both sides. Of a prescription: the fastest run with its axes, against the fastest of
  // all, where others were run too.
  std::vector<Pair> best;

  int64_t num_agreeing() const;               // pairs with a gain above 0
  std::optional<double> median_gain() const;  // of the pairs
  std::vector<Pair> exceptions() const;       // pairs with a gain below 0, the worst first
  int64_t num_best_agreeing() const;          // sweeps; a prescription agrees within kPrescriptionTolerance
  std::optional<double> median_best_gain() const;
};

struct EvidenceSummary {
  std::vector<Evidence> rules;  // one a rule, in the order of rules()
  int64_t num_runs = 0;         // ok and oom rows that were used
  int64_t num_unused = 0;       // rows that cannot be priced, ended otherwise, or say scored 0
  int64_t num_sweeps = 0;
};

struct EvidenceOptions {
  std::string engine = "";  // replaces the engine column when not empty
};

EvidenceSummary evidence_from_runs(const std::vector<runs::RunTable>& tables, const EvidenceOptions& options);

}  // namespace layline::study
