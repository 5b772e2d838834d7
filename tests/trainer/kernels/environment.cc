// Tests run beside each other: ATen's references take one thread each.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace layline::trainer::kernels::test {
namespace {

class OneThread : public testing::Environment {
 public:
  void SetUp() override { at::set_num_threads(1); }
};

// GoogleTest owns it.
const testing::Environment* const kOneThread = testing::AddGlobalTestEnvironment(new OneThread);

}  // namespace
}  // namespace layline::trainer::kernels::test
