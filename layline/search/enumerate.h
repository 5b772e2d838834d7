// All layouts that a search looks at, in an order in which what is dear to price changes last.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "layline/layout/layout.h"
#include "layline/layout/layout_text.h"
#include "layline/spec/job.h"

namespace layline::search {

// A part of the space that one task walks: one choice of tp, cp and pp; dp follows.
struct Mesh {
  int64_t dp = 1, tp = 1, cp = 1, pp = 1;
};

// Meshes of the job's GPUs that the constraints allow and some legal layout may have, in increasing (tp, cp, pp).
std::vector<Mesh> meshes(const spec::Job& job, const layout::LayoutConstraints& fix);

// What `visit` tells the walk about the layout it was given.
enum class Visit { kNext, kSkipLargerMicroBatches };

// By what factor a larger micro-batch may need less memory than a smaller one: 1 but for engines that are followed
// operator by operator, of which the last micro-batches of a step post and keep fewer messages.
double micro_batch_memory_slack(const spec::Engine& engine);

// Calls `visit` for the legal layouts of one mesh, micro-batches innermost and increasing. `skipped` is called with
// every legal layout that was not visited because a smaller micro-batch said so.
//
// Axes that the constraints leave free take every value, but for choices that can never win and are left out unless
// fixed: attention and norm kernels other than the best that the engine has (they cost more time and more memory),
// gpipe (1F1B takes no longer and keeps less), splits other than the engine's default (the best layouts are refined
// with them afterwards), and ckpt=full:K (likewise).
void for_each_layout(const spec::Job& job, const layout::LayoutConstraints& fix, const Mesh& mesh,
                     const std::function<Visit(const layout::Layout&)>& visit,
                     const std::function<void(const layout::Layout&)>& skipped);

// Divisors of n in increasing order.
std::vector<int64_t> divisors(int64_t n);

}  // namespace layline::search
