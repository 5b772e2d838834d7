// Every run of every sweep, as the appendix of a paper lists them.
#pragma once

#include "layline/report/builders.h"

namespace layline::report {

// A table a sweep: the runs that ran, fastest first; then those out of memory, without a kernel, failed.
Section appendix(const RunList& runs);

}  // namespace layline::report
