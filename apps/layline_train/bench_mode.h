// `layline-train bench SAMPLES`: a rank of `layline bench`, which starts it.
#pragma once

namespace layline::app {

// Returns the exit code.
int run_bench_mode(int argc, char** argv);

}  // namespace layline::app
