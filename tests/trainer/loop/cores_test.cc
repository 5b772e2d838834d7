#include "layline/trainer/loop/cores.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace layline::trainer::loop {
namespace {

TEST(Cores, OfThisProcessAreItsMachineAndAtLeastOneCore) {
  EXPECT_EQ(share_of_cores(own_cores(), {own_cores()}), share_of_cores(own_cores(), {}));
  EXPECT_EQ(own_cores(), own_cores());
  EXPECT_NE(own_cores().find(' '), std::string::npos);
}

TEST(Cores, AreDividedAmongTheRanksThatMayUseThem) {
  const struct {
    const char* why;
    std::string own;
    std::vector<std::string> all;
    int64_t share;
  } table[] = {
      {"one rank has all", "a 0-7", {"a 0-7"}, 8},
      {"two halve them", "a 0-7", {"a 0-7", "a 0-7"}, 4},
      {"three leave two over", "a 0-7", {"a 0-7", "a 0-7", "a 0-7"}, 2},
      {"more ranks than cores have one each", "a 0-1", {"a 0-1", "a 0-1", "a 0-1", "a 0-1"}, 1},
      {"other machines do not count", "a 0-7", {"a 0-7", "b 0-7", "b 0-7"}, 8},
      {"ranks that were bound to cores of their own keep them", "a 4-7", {"a 0-3", "a 4-7"}, 4},
      {"single cores and ranges", "a 0,2-3,9", {"a 0,2-3,9", "a 10"}, 4},
      {"cores shared in part", "a 0-3", {"a 0-3", "a 2-5"}, 3},
      {"one core", "a 5", {"a 5"}, 1},
      {"a machine that does not tell its cores", "a", {"a"}, 1},
  };
  for (const auto& row : table) EXPECT_EQ(share_of_cores(row.own, row.all), row.share) << row.why;
}

}  // namespace
}  // namespace layline::trainer::loop
