#include "layline/trainer/formats/megatron_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tests/trainer/formats/files.h"

namespace layline::trainer::formats::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

MegatronIndex parse(const std::string& bytes, int64_t bin_bytes) {
  return parse_megatron_index(std::as_bytes(std::span(bytes)), "c.idx", bin_bytes, "c.bin");
}

TEST(MegatronIndex, CountsSequencesDocumentsAndTokens) {
  IndexFile file(4, 4, {3, 0, 5, 2});
  file.documents = {0, 2, 2, 4};
  file.count();
  const MegatronIndex index = parse(file.bytes(), 40);
  EXPECT_EQ(index.type, TokenType::kI32);
  EXPECT_EQ(index.num_sequences, 4);
  EXPECT_EQ(index.num_documents, 3);
  EXPECT_EQ(index.num_empty_documents, 1);
  EXPECT_EQ(index.num_tokens, 10);
}

TEST(MegatronIndex, MayDescribeNothing) {
  const MegatronIndex index = parse(IndexFile(8, 2, {}).bytes(), 0);
  EXPECT_EQ(index.num_sequences, 0);
  EXPECT_EQ(index.num_documents, 0);
  EXPECT_EQ(index.num_tokens, 0);
}

TEST(MegatronIndex, CountsBeyondThirtyTwoBits) {
  const int64_t length = std::numeric_limits<int32_t>::max();
  const IndexFile file(8, 2, {length, length, length});
  EXPECT_EQ(parse(file.bytes(), 6 * length).num_tokens, 3 * length);
}

struct Damage {
  const char* name;
  std::function<void(IndexFile&)> act;
  std::vector<const char*> said;  // in the message
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

class DamagedIndex : public testing::TestWithParam<Damage> {};

TEST_P(DamagedIndex, IsAnErrorThatSaysWhereAndWhat) {
  IndexFile file(8, 2, {3, 4, 5});
  GetParam().act(file);
  const std::string message = input_error([&] { parse(file.bytes(), 24); });
  EXPECT_THAT(message, HasSubstr("c.idx"));
  for (const char* said : GetParam().said) EXPECT_THAT(message, HasSubstr(said));
}

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

INSTANTIATE_TEST_SUITE_P(
    All, DamagedIndex,
    testing::Values(
        Damage{"Magic", [](IndexFile& f) { f.magic[2] = 'X'; }, {"byte 0", "MMIDIDX"}},
        Damage{"OldFormat", [](IndexFile& f) { f.magic = std::string("TNTIDX\0\0\1", 9); }, {"fairseq", "MMIDIDX"}},
        Damage{"Version", [](IndexFile& f) { f.version = 2; }, {"byte 9", "version 2", "want 1"}},
        Damage{"TypeF64", [](IndexFile& f) { f.type = 6; }, {"byte 17", "f64", "u16"}},
        Damage{"TypeF32", [](IndexFile& f) { f.type = 7; }, {"byte 17", "f32", "u16"}},
        Damage{"TypeUnknown", [](IndexFile& f) { f.type = 9; }, {"byte 17", "9", "u16"}},
        Damage{"TypeZero", [](IndexFile& f) { f.type = 0; }, {"byte 17", "0", "u16"}},
        Damage{"TypeOfAnotherSize", [](IndexFile& f) { f.type = 4; }, {"sequence 1", "byte 6", "want 12"}},
        Damage{"ManySequences", [](IndexFile& f) { f.num_sequences = kHuge; }, {"byte 18", "18446744073709551615"}},
        Damage{"SequencesThatWrap", [](IndexFile& f) { f.num_sequences = kHuge / 12 + 2; }, {"byte 18"}},
        Damage{"OneSequenceMore", [](IndexFile& f) { f.num_sequences = 4; }, {"4 sequences"}},
        Damage{"OneSequenceLess", [](IndexFile& f) { f.num_sequences = 2; }, {"2 sequences"}},
        Damage{"ManyDocuments", [](IndexFile& f) { f.num_documents = kHuge; }, {"byte 26", "18446744073709551615"}},
        Damage{"DocumentsThatWrap", [](IndexFile& f) { f.num_documents = kHuge / 8 + 2; }, {"byte 26"}},
        Damage{"NoDocumentIndex", [](IndexFile& f) { f.num_documents = 0; }, {"byte 26", "documents + 1"}},
        Damage{"BytesAtTheEnd", [](IndexFile& f) { f.tail = "x"; }, {"103 bytes", "102"}},
        Damage{"NegativeLength", [](IndexFile& f) { f.lengths[1] = -4; }, {"byte 38", "sequence 1", "-4"}},
        Damage{"NegativePointer", [](IndexFile& f) { f.pointers[0] = -2; }, {"byte 46", "sequence 0", "-2", "want 0"}},
        Damage{"Overlap", [](IndexFile& f) { f.pointers[2] = 12; }, {"byte 62", "sequence 2", "byte 12", "want 14"}},
        Damage{"PointerOutside", [](IndexFile& f) { f.pointers[2] = int64_t{1} << 40; }, {"byte 62", "sequence 2"}},
        Damage{"FirstDocument", [](IndexFile& f) { f.documents[0] = 1; }, {"byte 70", "entry 0", "is 1", "want 0"}},
        Damage{"NegativeDocument", [](IndexFile& f) { f.documents[1] = -1; }, {"byte 78", "entry 1", "want 0 to 3"}},
        Damage{"DocumentsBackwards", [](IndexFile& f) { f.documents[2] = 0; }, {"byte 86", "entry 2", "want 1 to 3"}},
        Damage{"DocumentOutside", [](IndexFile& f) { f.documents[1] = 4; }, {"byte 78", "is 4", "want 0 to 3"}},
        Damage{"LastDocument", [](IndexFile& f) { f.documents[3] = 2; }, {"byte 94", "is 2", "want 3"}},
        Damage{"LastDocumentBeyond", [](IndexFile& f) { f.documents[3] = 4; }, {"byte 94", "is 4", "want 3"}}),
    [](const auto& info) { return info.param.name; });

TEST(MegatronIndex, NamesTheBinThatIsNotItsOwn) {
  const std::string bytes = IndexFile(8, 2, {3, 4, 5}).bytes();
  EXPECT_THAT(
      input_error([&] { parse(bytes, 23); }),
      AllOf(HasSubstr("c.bin: has 23 bytes"), HasSubstr("which take 24"), HasSubstr("cut short"), HasSubstr("c.idx")));
  EXPECT_THAT(input_error([&] { parse(bytes, 26); }), AllOf(HasSubstr("c.bin: has 26 bytes"), HasSubstr("take 24")));
}

TEST(MegatronIndex, CutAnywhereIsAnError) {
  const std::string bytes = IndexFile(8, 2, {3, 0, 5}).bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(input_error([&] { parse(bytes.substr(0, size), 16); }), HasSubstr("c.idx")) << size;
  }
}

// A changed bit is found, or leaves an index that means the same tokens.
TEST(MegatronIndex, WithAnyBitFlippedNeverPointsOutsideTheBin) {
  const std::string bytes = IndexFile(8, 2, {3, 0, 5}).bytes();
  int num_found = 0;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    try {
      const MegatronIndex index = parse(damaged, 16);
      EXPECT_EQ(index.num_tokens * num_bytes(index.type), 16) << bit;
      EXPECT_EQ(index.num_sequences, 3) << bit;
    } catch (const base::InputError&) {
      ++num_found;
    }
  }
  // Two documents' bounds may move: nothing else can.
  EXPECT_GE(num_found, static_cast<int>(8 * bytes.size()) - 4);
}

}  // namespace
}  // namespace layline::trainer::formats::test
