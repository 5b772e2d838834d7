// Advice, evidence and studies as tables of text: what commands print and reports draw.
#pragma once

#include <string>
#include <vector>

#include "layline/study/advice.h"
#include "layline/study/evidence.h"
#include "layline/study/study.h"

namespace layline::study {

struct Table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // as many cells as columns
};

// "+7.0 %" of a gain; of a prescription "12.3 % slower" or "the best".
std::string gain_text(const Rule& rule, double gain);

// A row a rule that some runs bear on: pairs, how many agree, by how much, what fits, sweeps, the worst exception.
Table evidence_table(const EvidenceSummary& evidence);
// The exceptions of one rule by name, the worst first, at most `limit`.
Table exceptions_table(const Evidence& evidence, size_t limit);

// A row a rule: at how many jobs it holds, makes no difference ("same"), breaks, does not apply; the median and the
// worst gain and where.
Table rules_table(const Study& study);
// A row a job: its values in the lists that vary, its best layout, step time, MFU, or that nothing fits, and a mark a
// rule: + holds, = no difference, - breaks, . does not apply.
Table jobs_table(const Study& study);
// A row a rule and list along which it turns: from which values on, and on how many lines of jobs.
Table turns_table(const Study& study);
// Where rules stop being true, and where they become true: a row a line of jobs that differ in one list only.
Table boundaries_table(const Study& study);

}  // namespace layline::study
