// How the ranks of a run come together: all with the same settings, or not at all.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "layline/trainer/config/run_config.h"
#include "layline/trainer/loop/train.h"

namespace layline::trainer::comm {
class RunStore;
}

namespace layline::trainer::loop {

// Returns when all ranks have come with the same settings and none has given up. Throws base::InputError on the rank
// that is to say why not, FailedElsewhere on the others. The timeout is for rank 0 to answer, then for all to come.
std::unique_ptr<comm::RunStore> meet(const config::RunConfig& config, const Launch& launch,
                                     std::chrono::milliseconds timeout);

}  // namespace layline::trainer::loop
