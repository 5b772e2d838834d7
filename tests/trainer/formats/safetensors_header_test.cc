#include "layline/trainer/formats/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "layline/trainer/formats/safetensors_index.h"
#include "tests/trainer/formats/files.h"

namespace layline::trainer::formats::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

SafetensorsHeader parse(const std::string& bytes) {
  return parse_safetensors_header(std::as_bytes(std::span(bytes)), "m.safetensors");
}

constexpr const char* kGood =
    R"({"b":{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]},"__metadata__":{"format":"pt"},)"
    R"("a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"e":{"dtype":"F64","shape":[0,5],"data_offsets":[28,28]},)"
    R"("s":{"dtype":"U8","shape":[],"data_offsets":[28,29]}}   )";

TEST(SafetensorsHeader, GivesTypeShapeAndPlaceOfEachTensor) {
  const std::string file = safetensors_bytes(kGood, std::string(29, 'x'));
  const SafetensorsHeader header = parse(file);
  const int64_t data = static_cast<int64_t>(file.size()) - 29;
  ASSERT_EQ(header.tensors.size(), 4u);
  EXPECT_EQ(header.tensors.at("a").type, TensorType::kBf16);
  EXPECT_EQ(header.tensors.at("a").begin_bytes, data);
  EXPECT_THAT(header.tensors.at("b").shape, ElementsAre(2, 3));
  EXPECT_EQ(header.tensors.at("b").begin_bytes, data + 4);
  EXPECT_EQ(header.tensors.at("b").size_bytes, 24);
  EXPECT_EQ(header.tensors.at("e").size_bytes, 0);
  EXPECT_THAT(header.tensors.at("s").shape, IsEmpty());
  EXPECT_EQ(header.tensors.at("s").size_bytes, 1);
  EXPECT_EQ(header.metadata.at("format"), "pt");
}

TEST(SafetensorsHeader, MayNameNoTensor) { EXPECT_THAT(parse(safetensors_bytes("{}", "")).tensors, IsEmpty()); }

TEST(SafetensorsHeader, CutAnywhereIsAnError) {
  const std::string file = safetensors_bytes(kGood, std::string(29, 'x'));
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_THAT(input_error([&] { parse(file.substr(0, size)); }), HasSubstr("m.safetensors")) << size;
  }
  EXPECT_THAT(input_error([&] { parse(file + "x"); }), HasSubstr("1 bytes after the last tensor"));
}

TEST(SafetensorsHeader, WithAnyBitFlippedNeverPointsOutsideTheFile) {
  const std::string file = safetensors_bytes(kGood, std::string(29, 'x'));
  for (size_t bit = 0; bit < 8 * (file.size() - 29); ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    try {
      for (const auto& [name, entry] : parse(damaged).tensors) {
        EXPECT_GE(entry.begin_bytes, 8) << bit;
        EXPECT_LE(entry.begin_bytes + entry.size_bytes, static_cast<int64_t>(file.size())) << bit;
      }
    } catch (const base::InputError&) {
    }
  }
}

struct BadHeader {
  const char* name;
  std::string text;  // of a file with 8 bytes of data
  const char* said;
};

void PrintTo(const BadHeader& header, std::ostream* out) { *out << header.name; }

class BadSafetensorsHeader : public testing::TestWithParam<BadHeader> {};

TEST_P(BadSafetensorsHeader, IsAnErrorThatSaysWhy) {
  const std::string message = input_error([] { parse(safetensors_bytes(GetParam().text, "12345678")); });
  EXPECT_THAT(message, HasSubstr("m.safetensors"));
  EXPECT_THAT(message, HasSubstr(GetParam().said));
  EXPECT_LT(message.size(), 400u);
}

// One tensor "w" with these values.
std::string tensor(const std::string& type, const std::string& shape, const std::string& offsets) {
  return R"({"w":{"dtype":)" + type + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

INSTANTIATE_TEST_SUITE_P(
    All, BadSafetensorsHeader,
    testing::Values(
        BadHeader{"Empty", "", "does not begin with {"}, BadHeader{"Array", "[]", "does not begin with {"},
        BadHeader{"SpaceFirst", " {}", "does not begin with {"}, BadHeader{"NoJson", "{\"w\":", "no valid JSON"},
        BadHeader{"Utf8", "{\"\xff\":{}}", "no valid JSON"}, BadHeader{"Rest", "{} {}", "no valid JSON"},
        BadHeader{"Deep", "{\"w\":" + std::string(100000, '[') + std::string(100000, ']') + "}", "levels"},
        BadHeader{"Twice", R"({"w":{},"w":{}})", "\"w\" is there twice"},
        BadHeader{"KeyTwice", R"({"w":{"dtype":"U8","dtype":"I8"}})", "\"dtype\" is there twice"},
        BadHeader{"NoObject", R"({"w":3})", "tensor \"w\": found 3, want an object"},
        BadHeader{"UnknownKey", R"({"w":{"dtyp":"U8"}})", "unknown key \"dtyp\""},
        BadHeader{"NoType", R"({"w":{"shape":[8],"data_offsets":[0,8]}})", "lacks dtype"},
        BadHeader{"NoShape", R"({"w":{"dtype":"U8","data_offsets":[0,8]}})", "lacks shape"},
        BadHeader{"NoOffsets", R"({"w":{"dtype":"U8","shape":[8]}})", "lacks data_offsets"},
        BadHeader{"Type", tensor(R"("F12")", "[8]", "[0,8]"), "dtype \"F12\"; allowed are BOOL, U8"},
        BadHeader{"TypeNumber", tensor("1", "[8]", "[0,8]"), "dtype 1"},
        BadHeader{"ShapeText", tensor(R"("U8")", R"("8")", "[0,8]"), "shape: found \"8\""},
        BadHeader{"ShapeNegative", tensor(R"("U8")", "[-8]", "[0,8]"), "shape: found [-8]"},
        BadHeader{"ShapeFraction", tensor(R"("U8")", "[8.0]", "[0,8]"), "shape: found [8.0]"},
        BadHeader{"ShapeLarge", tensor(R"("U8")", "[9223372036854775808]", "[0,8]"), "shape: found [9223372"},
        BadHeader{"ShapeWraps", tensor(R"("U8")", "[4294967296,4294967296,4294967296]", "[0,8]"), "more than a file"},
        BadHeader{"ShapeWrapsToSize", tensor(R"("F64")", "[2305843009213693953]", "[0,8]"), "more than a file"},
        BadHeader{"Size", tensor(R"("F32")", "[3]", "[0,8]"), "give it 8 bytes; F32 of shape [3] takes 12"},
        BadHeader{"OneOffset", tensor(R"("U8")", "[8]", "[8]"), "1 numbers, want 2"},
        BadHeader{"Backwards", tensor(R"("U8")", "[8]", "[8,0]"), "are 8 and 0"},
        BadHeader{"Outside", tensor(R"("U8")", "[16]", "[0,16]"), "within the 8 bytes"},
        BadHeader{"Hole", tensor(R"("U8")", "[4]", "[4,8]"), "begins at 4; want 0"},
        BadHeader{"Rests", tensor(R"("U8")", "[4]", "[0,4]"), "4 bytes after the last tensor"},
        BadHeader{"NothingNamed", "{}", "8 bytes after the last tensor"},
        BadHeader{"Overlap",
                  R"({"v":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},)"
                  R"("w":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                  "tensor \"w\": begins at 4; want 6"},
        BadHeader{"Metadata", R"({"__metadata__":{"a":1}})", "__metadata__: found {\"a\":1}"},
        BadHeader{"LongName", "{\"" + std::string(100000, 'n') + "\":1}", "nnn"}),
    [](const auto& info) { return info.param.name; });

TEST(SafetensorsHeader, OfAnImpossibleLengthIsAnError) {
  EXPECT_THAT(input_error([] { parse(bytes_of(uint64_t{100'000'001}) + "{}"); }), HasSubstr("at most 100000000"));
  EXPECT_THAT(input_error([] { parse(bytes_of(~uint64_t{0}) + "{}"); }), HasSubstr("at most 100000000"));
  EXPECT_THAT(input_error([] { parse(bytes_of(uint64_t{3}) + "{}"); }), HasSubstr("only 2 follow"));
  EXPECT_THAT(input_error([] { parse("\x89PNG\r\n\x1a\n.........."); }), HasSubstr("is this a safetensors file?"));
}

TEST(WrittenHeader, IsReadBackAlignedAndInOrder) {
  const std::map<std::string, TensorShape> tensors = {{"a\"\n\xc3\xa9", {TensorType::kBool, {3}}},
                                                      {"b", {TensorType::kF64, {2, 2}}},
                                                      {"c", {TensorType::kBf16, {}}},
                                                      {"d", {TensorType::kF64, {1}}},
                                                      {"e", {TensorType::kF32, {4, 0}}}};
  const WrittenHeader written = write_safetensors_header(tensors, {{"step", "3"}});
  EXPECT_THAT(written.order, ElementsAre("b", "d", "e", "c", "a\"\n\xc3\xa9"));
  EXPECT_EQ(written.bytes.size() % 8, 0u);
  const SafetensorsHeader header = parse(written.bytes + std::string(32 + 8 + 2 + 3, '\0'));
  EXPECT_EQ(header.metadata.at("step"), "3");
  ASSERT_EQ(header.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(header.tensors.at(name).type, tensor.type);
    EXPECT_EQ(header.tensors.at(name).shape, tensor.shape);
    EXPECT_EQ(header.tensors.at(name).begin_bytes % num_bytes(tensor.type), 0);
  }
}

std::string index_error(const std::string& text) {
  return input_error([&] { parse_safetensors_index(text, "i.json"); });
}

TEST(SafetensorsIndex, SaysWhichFileHasWhichTensor) {
  const auto files =
      parse_safetensors_index(R"({"metadata":{"total_size":3},"weight_map":{"a":"1.st","b":"2.st"}})", "i");
  EXPECT_THAT(files, ElementsAre(testing::Pair("a", "1.st"), testing::Pair("b", "2.st")));
}

TEST(SafetensorsIndex, ThatIsDamagedIsAnError) {
  EXPECT_THAT(index_error(""), HasSubstr("i.json: no valid JSON"));
  EXPECT_THAT(index_error("[]"), HasSubstr("want an object"));
  EXPECT_THAT(index_error("{}"), HasSubstr("lacks weight_map"));
  EXPECT_THAT(index_error(R"({"weight_map":[]})"), HasSubstr("found []"));
  EXPECT_THAT(index_error(R"({"weight_map":{}})"), HasSubstr("found {}"));
  EXPECT_THAT(index_error(R"({"weight_map":{"a":1}})"), HasSubstr("tensor \"a\": found 1"));
  EXPECT_THAT(index_error(R"({"weight_map":{"a":"x","a":"y"}})"), HasSubstr("twice"));
  for (const char* name : {"../x", "/etc/passwd", "a/b", "..", ".", "", "a\\u0000b"}) {
    EXPECT_THAT(index_error(std::string(R"({"weight_map":{"a":")") + name + R"("}})"),
                HasSubstr("name of a file in this"));
  }
}

}  // namespace
}  // namespace layline::trainer::formats::test
