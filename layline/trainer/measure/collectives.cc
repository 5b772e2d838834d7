#include "layline/trainer/measure/collectives.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "layline/spec/measured_names.h"
#include "layline/trainer/measure/operands.h"

namespace layline::trainer::measure {
namespace {

namespace m = spec::measured;

std::shared_ptr<comm::Group> neighbours(int64_t group_size, comm::GroupFactory& factory) {
  std::vector<int64_t> ranks(static_cast<size_t>(group_size));
  std::iota(ranks.begin(), ranks.end(), factory.rank() / group_size * group_size);
  return factory.make("bench", ranks);
}

// There and back: half of it is one message.
Operation make_send(const std::shared_ptr<comm::Group>& group, const Operands& out, const Operands& in) {
  const int64_t peer = 1 - group->rank();
  const bool is_first = peer == 1;
  const auto run = [=](int64_t i) {
    const std::unique_ptr<comm::Pending> answer = group->receive(in[i], peer, 0);
    if (!is_first) answer->wait();
    group->send(out[i], peer, 0);
    if (is_first) answer->wait();
    group->flush_sends();
  };
  return {{}, run, 0.5};
}

}  // namespace

Operation make_collective(std::string_view what, at::ScalarType dtype, int64_t group_size, int64_t bytes,
                          comm::GroupFactory& factory) {
  const auto element = static_cast<int64_t>(at::elementSize(dtype));
  const int64_t part = std::max<int64_t>(1, bytes / element / group_size);
  const Operands whole = Operands::zeros({group_size * part}, dtype), parts = Operands::zeros({part}, dtype);
  const std::shared_ptr<comm::Group> group = neighbours(group_size, factory);
  if (what == m::kAllReduce) return {{}, [=](int64_t i) { group->all_reduce(whole[i]); }};
  if (what == m::kReduceScatter) return {{}, [=](int64_t i) { group->reduce_scatter(whole[i], parts[i]); }};
  if (what == m::kAllGather) return {{}, [=](int64_t i) { group->all_gather(parts[i], whole[i]); }};
  if (what == m::kSend) return make_send(group, whole, Operands::zeros({group_size * part}, dtype));
  return {};
}

}  // namespace layline::trainer::measure
