#include "apps/layline_train/bench_mode.h"

#include "apps/layline_train/environment.h"
#include "apps/layline_train/interrupt.h"
#include "layline/base/error.h"
#include "layline/trainer/measure/measure.h"

namespace layline::app {

int run_bench_mode(int argc, char** argv) {
  if (argc != 3) throw base::InputError("layline-train bench wants the file of samples; `layline bench` starts it");
  ignore_lost_readers();
  trainer::measure::measure_missing(find_launch(variable), argv[2]);
  return 0;
}

}  // namespace layline::app
