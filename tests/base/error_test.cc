#include "layline/base/error.h"

#include <gtest/gtest.h>

namespace layline::base {
namespace {

TEST(NearestName, ForgivesTyposAndCase) {
  EXPECT_EQ(nearest_name("lama-13b", {"llama-7b", "llama-13b", "mpt-7b"}), "llama-13b");
  EXPECT_EQ(nearest_name("LLAMA-7B", {"llama-7b", "llama-13b"}), "llama-7b");
}

TEST(NearestName, IsEmptyWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("banana", {"llama-7b", "llama-13b"}), "");
  EXPECT_EQ(nearest_name("x", {}), "");
  EXPECT_EQ(nearest_name(std::string(100'000, 'x'), {"x"}), "");
}

TEST(UnknownNameMessage, SuggestsTheNearestOrListsWhatIsKnown) {
  EXPECT_EQ(unknown_name_message("GPU", "a1000", {"a100", "h100"}), "no GPU \"a1000\" (did you mean \"a100\"?)");
  EXPECT_EQ(unknown_name_message("GPU", "banana", {"a100", "h100"}), "no GPU \"banana\" (known: a100, h100)");
}

TEST(InputError, PutsTheWhereBeforeTheWhat) {
  EXPECT_STREQ(InputError("--gpus", "found 0").what(), "--gpus: found 0");
  EXPECT_STREQ(InputError("", "found 0").what(), "found 0");
}

}  // namespace
}  // namespace layline::base
