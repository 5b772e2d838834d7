#include "layline/trainer/data/safetensors.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "layline/base/file.h"
#include "tests/trainer/formats/files.h"

namespace layline::trainer::data::test {
namespace {

using formats::test::bytes_of;
using formats::test::input_error;
using formats::test::safetensors_bytes;
using formats::test::TemporaryFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr at::ScalarType kTypes[] = {at::kBool,   at::kByte,   at::kChar, at::kFloat8_e4m3fn, at::kFloat8_e5m2,
                                     at::kShort,  at::kUInt16, at::kHalf, at::kBFloat16,      at::kInt,
                                     at::kUInt32, at::kFloat,  at::kLong, at::kUInt64,        at::kDouble};

// Numbers that every type can hold but bool.
at::Tensor numbers(at::IntArrayRef shape, at::ScalarType type) {
  return (at::arange(c10::multiply_integers(shape)) % 13).reshape(shape).to(type);
}

bool is_same(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         at::equal(a.to(at::kDouble), b.to(at::kDouble));
}

class Safetensors : public testing::Test {
 protected:
  // One float "w", 1 × 2, written by hand.
  std::string write_w(const std::string& name, const std::string& tensor = "w") const {
    const std::string header = R"({")" + tensor + R"(":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})";
    return folder_.write(name, safetensors_bytes(header, bytes_of(1.5f) + bytes_of(-2.0f)));
  }
  void write_index(const std::string& weight_map) const {
    folder_.write("model.safetensors.index.json", R"({"metadata":{"total_size":16},"weight_map":)" + weight_map + "}");
  }
  std::string error() const {
    return input_error([&] { SafetensorsFolder folder(folder_.path()); });
  }

  TemporaryFolder folder_;
};

TEST_F(Safetensors, WrittenByHandAreRead) {
  const SafetensorsFolder file(write_w("x.safetensors"));
  EXPECT_THAT(file.names(), ElementsAre("w"));
  EXPECT_EQ(file.info("w").dtype, at::kFloat);
  EXPECT_THAT(file.info("w").shape, ElementsAre(1, 2));
  const at::Tensor w = file.load("w");
  EXPECT_EQ(w[0][0].item<float>(), 1.5f);
  EXPECT_EQ(w[0][1].item<float>(), -2.0f);
}

// Brain floats are the upper halves of floats: 1.5 is 0x3fc0.
TEST_F(Safetensors, OfBrainFloatsAreReadBitByBit) {
  const std::string header = R"({"w":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})";
  const SafetensorsFolder file(folder_.write("x", safetensors_bytes(header, std::string("\xc0\x3f\x00\xc0", 4))));
  EXPECT_EQ(file.load("w")[0].item<float>(), 1.5f);
  EXPECT_EQ(file.load("w")[1].item<float>(), -2.0f);
}

TEST_F(Safetensors, OfEveryTypeComeBackAsTheyWereWritten) {
  std::map<std::string, at::Tensor> tensors;
  for (const at::ScalarType type : kTypes) {
    const std::string name = c10::toString(type);
    tensors[name] = numbers({3, 5}, type);
    tensors[name + ".scalar"] = numbers({}, type);
    tensors[name + ".empty"] = numbers({2, 0}, type);
  }
  write_safetensors(folder_.file("x"), tensors, {{"format", "pt"}});
  const SafetensorsFolder file(folder_.file("x"));
  EXPECT_EQ(file.names().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(is_same(file.load(name), tensor)) << name;
}

TEST_F(Safetensors, AreSlicedAlongAnyDim) {
  for (const at::ScalarType type : {at::kBFloat16, at::kDouble, at::kByte}) {
    const at::Tensor whole = numbers({4, 3, 5}, type);
    write_safetensors(folder_.file("x"), {{"w", whole}});
    const SafetensorsFolder file(folder_.file("x"));
    for (int64_t dim = 0; dim < 3; ++dim) {
      for (int64_t offset = 0; offset <= whole.size(dim); ++offset) {
        for (int64_t length = 0; offset + length <= whole.size(dim); ++length) {
          const at::Tensor slice = file.slice("w", dim, offset, length);
          EXPECT_TRUE(slice.is_contiguous());
          EXPECT_TRUE(is_same(slice, whole.narrow(dim, offset, length))) << dim << " " << offset << " " << length;
        }
      }
    }
  }
}

TEST_F(Safetensors, OfAnyStridesAreWrittenDense) {
  const at::Tensor whole = numbers({4, 6}, at::kFloat).set_requires_grad(true);
  write_safetensors(folder_.file("x"),
                    {{"t", whole.t()}, {"n", whole.narrow(1, 2, 3)}, {"e", whole[0].expand({3, 6})}});
  const SafetensorsFolder file(folder_.file("x"));
  EXPECT_TRUE(is_same(file.load("t"), whole.t()));
  EXPECT_TRUE(is_same(file.load("n"), whole.narrow(1, 2, 3)));
  EXPECT_TRUE(is_same(file.load("e"), whole[0].expand({3, 6})));
}

TEST_F(Safetensors, LoadedAreCopies) {
  const SafetensorsFolder file(write_w("x"));
  file.load("w").zero_();
  EXPECT_EQ(file.load("w")[0][0].item<float>(), 1.5f);
}

TEST_F(Safetensors, OfAFolderAreInOneFile) {
  write_w("model.safetensors");
  write_index("{}");
  const SafetensorsFolder folder(folder_.path());
  EXPECT_EQ(folder.path(), folder_.path());
  EXPECT_THAT(folder.names(), ElementsAre("w"));
  EXPECT_TRUE(folder.has("w"));
  EXPECT_FALSE(folder.has("v"));
}

TEST_F(Safetensors, OfAFolderAreInShards) {
  write_w("model-00001-of-00002.safetensors", "a");
  write_w("model-00002-of-00002.safetensors", "b");
  write_index(R"({"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"})");
  const SafetensorsFolder folder(folder_.path());
  EXPECT_THAT(folder.names(), ElementsAre("a", "b"));
  EXPECT_EQ(folder.slice("b", 1, 1, 1).item<float>(), -2.0f);
}

TEST_F(Safetensors, ThatAreMissingSayWhatWasLookedFor) {
  EXPECT_THAT(error(), AllOf(HasSubstr("neither model.safetensors nor model.safetensors.index.json")));
  folder_.write("pytorch_model.bin", "");
  EXPECT_THAT(error(), HasSubstr("pytorch_model.bin is not read"));
  EXPECT_THAT(input_error([&] { SafetensorsFolder folder(folder_.file("no")); }), HasSubstr("No such file"));
}

TEST_F(Safetensors, OfShardsThatDoNotFitTheIndexAreAnError) {
  write_w("1.safetensors", "a");
  write_index(R"({"a":"1.safetensors","b":"2.safetensors"})");
  EXPECT_THAT(error(),
              AllOf(HasSubstr("index.json"), HasSubstr("\"b\""), HasSubstr("2.safetensors, which is missing")));
  write_index(R"({"a":"1.safetensors","b":"1.safetensors"})");
  EXPECT_THAT(error(), AllOf(HasSubstr("index.json"), HasSubstr("\"b\""), HasSubstr("1.safetensors, which lacks it")));
  write_index(R"({"a":"1.safetensors"})");
  folder_.write("1.safetensors", "cut");
  EXPECT_THAT(error(), AllOf(HasSubstr("1.safetensors"), HasSubstr("has 3 bytes")));
}

TEST_F(Safetensors, WithUnknownNamesSayTheNearest) {
  const SafetensorsFolder file(write_w("x", "model.norm.weight"));
  EXPECT_THAT(input_error([&] { file.load("model.nrom.weight"); }), HasSubstr("did you mean \"model.norm.weight\""));
  EXPECT_THROW(file.info("b"), base::InputError);
  EXPECT_THROW(file.slice("b", 0, 0, 1), base::InputError);
}

TEST_F(Safetensors, ReplaceTheOldFileAtOnce) {
  const std::string path = write_w("x");
  const SafetensorsFolder old(path);
  write_safetensors(path, {{"v", at::ones({2})}});
  EXPECT_THAT(SafetensorsFolder(path).names(), ElementsAre("v"));
  EXPECT_EQ(old.load("w")[0][1].item<float>(), -2.0f);  // whoever had it open has the old one
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), std::filesystem::directory_iterator()),
            1);
  EXPECT_THROW(write_safetensors(folder_.file("no/x"), {}), base::InputError);
}

TEST_F(Safetensors, WithTheSameTensorsHaveTheSameBytes) {
  write_safetensors(folder_.file("x"), {{"a", at::ones({2})}, {"b", at::ones({1}, at::kDouble)}}, {{"k", "v"}});
  write_safetensors(folder_.file("y"), {{"b", at::ones({1}, at::kDouble)}, {"a", at::ones({2})}}, {{"k", "v"}});
  EXPECT_EQ(base::read_file(folder_.file("x")), base::read_file(folder_.file("y")));
}

}  // namespace
}  // namespace layline::trainer::data::test
