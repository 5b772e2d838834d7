#include "layline/trainer/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>

#include "layline/trainer/checkpoint/coverage.h"
#include "tests/trainer/formats/files.h"

namespace layline::trainer::checkpoint::test {
namespace {

using formats::test::input_error;
using testing::HasSubstr;

// A weight of 4 x 6 in two files, and one of 5 in the second.
Manifest small() {
  Manifest manifest;
  manifest.step = 40;
  manifest.tokens = 640;
  manifest.next_sample = 40;
  manifest.seed = 7;
  manifest.layout = "dp2 tp1 pp1 mb1";
  manifest.run = "{\n  \"seed\": 7\n}";
  manifest.parameters = {{"a", {4, 6}}, {"b", {5}}};
  manifest.files = {
      {"one", 1000, 100, 100, 3, 0x1234567890abcdef, 2, {{0, {0, 0, 4, 2}, {200, 300, 400}}}},
      {"two",
       2000,
       100,
       100,
       9,
       3,
       ~uint64_t{0},
       {{0, {0, 2, 1, 4}, {300, 400, 500}}, {0, {1, 2, 3, 4}, {600, 700, 800}}, {1, {0, 0, 5, 1}, {900, 1000, 1100}}}}};
  return manifest;
}

TEST(Manifest, IsReadBackAsItWasWritten) {
  EXPECT_EQ(parse_manifest(to_json(small()), "m"), small());
  Manifest weights_only = small();
  weights_only.has_moments = false;
  weights_only.type = formats::TensorType::kF64;
  weights_only.files[0].slices[0].begin_bytes = {200, 0, 0};
  for (SavedSlice& slice : weights_only.files[1].slices) slice.begin_bytes[1] = slice.begin_bytes[2] = 0;
  EXPECT_EQ(parse_manifest(to_json(weights_only), "m"), weights_only);
}

TEST(Manifest, EntriesOfFilesTravelAlone) {
  const SavedFile file = small().files[1];
  EXPECT_EQ(parse_saved_file(to_json(file), "m"), file);
}

RC_GTEST_PROP(Manifest, EveryFlippedBitAndEveryCutIsNoticed, ()) {
  const std::string good = to_json(small());
  std::string bad = good;
  const auto place = *rc::gen::inRange<size_t>(0, good.size());
  if (*rc::gen::arbitrary<bool>()) {
    bad[place] = static_cast<char>(bad[place] ^ 1 << *rc::gen::inRange(0, 8));
  } else {
    bad.resize(place);
  }
  RC_ASSERT(input_error([&] { parse_manifest(bad, "m.json"); }).starts_with("m.json: is damaged"));
}

TEST(Manifest, WhatDoesNotCoverEveryWeightOnceIsRefused) {
  const std::pair<std::function<void(Manifest&)>, const char*> table[] = {
      {[](Manifest& m) { m.files[1].slices.pop_back(); }, "weight b: 5 of 5 elements are in no file"},
      {[](Manifest& m) { m.files[0].slices[0].box.num_rows = 3; }, "weight a: 2 of 24 elements are in no file"},
      {[](Manifest& m) { m.files[1].slices[1].box = {0, 2, 3, 4}; }, "weight a: row 0, column 2 is in two places"},
      {[](Manifest& m) { m.files[1].slices[1].box = {1, 1, 3, 4}; }, "weight a: row 1, column 1 is in two places"},
      {[](Manifest& m) { m.files[1].slices[1].box = {1, 2, 4, 4}; },
       "file two: rows 1 to 5, columns 2 to 6 lie outside"},
      {[](Manifest& m) { m.files[1].slices[1].box = {1, 2, 0, 4}; }, "lie outside of weight a"},
      {[](Manifest& m) { m.files[1].slices[1].parameter = 2; }, "file two: holds weight 2, there are 2"},
      {[](Manifest& m) { m.files[1].slices[1].begin_bytes[2] = 1990; },
       "file two: exp_avg_sq of weight a lies outside"},
      {[](Manifest& m) { m.files[1].slices[1].begin_bytes[0] = 99; }, "file two: weight of weight a lies outside"},
      {[](Manifest& m) { m.files[1].name = "one"; }, "names file one twice"},
      {[](Manifest& m) { m.files[1].name = "../two"; }, "names a file \"../two\", which is not in its folder"},
      {[](Manifest& m) { m.files[1].num_hashes = 1000; }, "file two: its parts lie outside of it"},
  };
  for (const auto& [change, message] : table) {
    Manifest manifest = small();
    change(manifest);
    EXPECT_THAT(input_error([&, &m = manifest] { parse_manifest(to_json(m), "m.json"); }), HasSubstr(message));
  }
}

TEST(Manifest, OtherFilesAreNone) {
  for (const char* text : {"", "{}", "{\n}\n", "not JSON", "\0\0"}) {
    EXPECT_THAT(input_error([&] { parse_manifest(text, "m.json"); }), HasSubstr("m.json: is damaged")) << text;
  }
  for (const char* text : {"", "{}", "[1]", R"({"name": 5})"}) {
    EXPECT_THAT(input_error([&] { parse_saved_file(text, "m.json"); }), HasSubstr("is no manifest")) << text;
  }
}

}  // namespace
}  // namespace layline::trainer::checkpoint::test
