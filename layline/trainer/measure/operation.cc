#include "layline/trainer/measure/operation.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "layline/base/error.h"
#include "layline/base/number.h"
#include "layline/trainer/measure/collectives.h"
#include "layline/trainer/measure/kernels.h"
#include "layline/trainer/measure/layers.h"

namespace layline::trainer::measure {
namespace {

// "all_reduce.bf16.2".
struct Name {
  std::string what, precision, group;
};

Name parts_of(const std::string& table) {
  const size_t first = table.find('.'), second = table.find('.', first + 1);
  if (first == std::string::npos) return {table, "", ""};
  const bool has_group = second != std::string::npos;
  return {table.substr(0, first), table.substr(first + 1, has_group ? second - first - 1 : std::string::npos),
          has_group ? table.substr(second + 1) : ""};
}

Operation make(const Name& name, const std::vector<double>& sizes, comm::GroupFactory& factory) {
  const at::ScalarType dtype = name.precision == "bf16" ? at::kBFloat16 : at::kFloat;
  const int64_t group_size = name.group.empty() ? 1 : base::to_whole_number(name.group).value_or(1);
  if (sizes.size() == 1 && group_size > 1) {
    return make_collective(name.what, dtype, group_size, static_cast<int64_t>(sizes[0]), factory);
  }
  if (sizes.size() == 3) return make_product(name.what, dtype, sizes);
  if (sizes.size() == 1) return make_kernel(name.what, dtype, static_cast<int64_t>(sizes[0]));
  Operation attention = make_attention(name.what, dtype, sizes);
  return attention.run ? attention : make_layer(name.what, dtype, group_size, sizes, factory);
}

}  // namespace

Operation make_operation(const machine::Point& point, comm::GroupFactory& factory) {
  Operation operation = make(parts_of(point.table), point.sizes, factory);
  if (!operation.run) throw base::InputError(fmt::format("nothing is known of how to measure {}", point.table));
  return operation;
}

}  // namespace layline::trainer::measure
