#include "layline/trainer/formats/token_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "layline/trainer/formats/megatron_tokens.h"
#include "layline/trainer/formats/open_tokens.h"
#include "layline/trainer/formats/text_tokens.h"
#include "tests/trainer/formats/files.h"

namespace layline::trainer::formats::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> read(const TokenSource& source, int64_t offset, int64_t count) {
  std::vector<int64_t> tokens(static_cast<size_t>(count));
  source.read(offset, tokens);
  return tokens;
}

std::vector<int64_t> read_all(const TokenSource& source) { return read(source, 0, source.num_tokens()); }

class Tokens : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

template <typename Token>
void check_type(const TemporaryFolder& folder, uint8_t code) {
  const int64_t lowest = +std::numeric_limits<Token>::min(), largest = +std::numeric_limits<Token>::max();
  const std::vector<int64_t> tokens = {0, 1, largest, 7, largest - 1, lowest};
  folder.write("t.bin", bytes_of_all<Token>(tokens));
  folder.write("t.idx", IndexFile(code, sizeof(Token), {1, 0, 4, 1, 0}).bytes());
  const MegatronTokens source(folder.file("t"));
  EXPECT_EQ(read_all(source), tokens) << int{code};
  EXPECT_THAT(read(source, 2, 2), ElementsAre(largest, 7));
  EXPECT_TRUE(read(source, 6, 0).empty());
  EXPECT_EQ(source.largest_token(), largest);
  EXPECT_EQ(source.largest_possible_token(), largest);
}

TEST_F(Tokens, OfEveryTypeAreReadAsWritten) {
  check_type<uint8_t>(folder_, 1);
  check_type<int8_t>(folder_, 2);
  check_type<int16_t>(folder_, 3);
  check_type<int32_t>(folder_, 4);
  check_type<int64_t>(folder_, 5);
  check_type<uint16_t>(folder_, 8);
}

TEST_F(Tokens, OfATextAreItsBytes) {
  const TextTokens source(folder_.write("text", std::string("a\0\xff\n", 4)));
  EXPECT_EQ(source.num_tokens(), 4);
  EXPECT_THAT(read_all(source), ElementsAre('a', 0, 255, '\n'));
  EXPECT_EQ(source.largest_token(), 255);
}

TEST_F(Tokens, MayBeNone) {
  const TextTokens text(folder_.write("empty", ""));
  EXPECT_EQ(text.num_tokens(), 0);
  EXPECT_EQ(text.largest_token(), -1);
  const MegatronTokens megatron(write_u16_tokens(folder_, "none", {}));
  EXPECT_EQ(megatron.num_tokens(), 0);
  EXPECT_EQ(megatron.index().num_documents, 1);
  EXPECT_NO_THROW(check_vocabulary_of_start(megatron, 1));
}

// A .bin of 6 GiB that takes no place on the disk, with tokens at its end and around 2^31 and 2^32 bytes.
TEST_F(Tokens, BeyondFourGibibytesAreRead) {
  const int64_t length = int64_t{1} << 30, bin_bytes = 6 * length;
  const std::string bin = folder_.write("big.bin", "");
  ASSERT_EQ(::truncate(bin.c_str(), bin_bytes), 0);
  folder_.write("big.idx", IndexFile(8, 2, {length, length, length}).bytes());
  const std::vector<int64_t> places = {(int64_t{1} << 31) - 2, int64_t{1} << 31, (int64_t{1} << 32) - 2,
                                       int64_t{1} << 32,       bin_bytes - 2,    3 * length};
  std::fstream file(bin, std::ios::binary | std::ios::in | std::ios::out);
  for (size_t i = 0; i < places.size(); ++i) {
    file.seekp(places[i]);
    file << bytes_of(static_cast<uint16_t>(1000 + i));
  }
  file.close();

  const MegatronTokens source(folder_.file("big"));
  EXPECT_EQ(source.num_tokens(), 3 * length);
  for (size_t i = 0; i < places.size(); ++i) {
    EXPECT_THAT(read(source, places[i] / 2, 1), ElementsAre(1000 + static_cast<int64_t>(i)));
  }
  ASSERT_EQ(::truncate(bin.c_str(), bin_bytes - 1), 0);
  EXPECT_THAT(input_error([&] { MegatronTokens(folder_.file("big")); }), HasSubstr("cut short"));
}

TEST_F(Tokens, CutAnywhereAreAnError) {
  const std::string prefix = write_u16_tokens(folder_, "t", {1, 2, 3, 4});
  for (int64_t size = 0; size < 8; ++size) {
    ASSERT_EQ(::truncate((prefix + ".bin").c_str(), size), 0);
    EXPECT_THAT(input_error([&] { open_tokens(prefix); }), AllOf(HasSubstr("t.bin"), HasSubstr("cut short")));
  }
}

TEST_F(Tokens, BeyondTheVocabularyAreNamedWithTheirPosition) {
  const MegatronTokens source(write_u16_tokens(folder_, "t", {5, 9, 40000, 2, 50000}));
  EXPECT_NO_THROW(check_vocabulary(source, 0, read(source, 0, 2), 10));
  EXPECT_NO_THROW(check_vocabulary_of_start(source, 50001));
  EXPECT_THAT(input_error([&] { check_vocabulary(source, 1, read(source, 1, 4), 10); }),
              AllOf(HasSubstr("t.bin"), HasSubstr("token 2 has the id 40000"), HasSubstr("0 to 9")));
  EXPECT_THAT(input_error([&] { check_vocabulary_of_start(source, 50000); }),
              AllOf(HasSubstr("token 4 has the id 50000"), HasSubstr("0 to 49999")));
}

TEST_F(Tokens, ThatAreNegativeAreNoVocabulary) {
  folder_.write("t.bin", bytes_of_all<int32_t>({3, -1}));
  folder_.write("t.idx", IndexFile(4, 4, {2}).bytes());
  const MegatronTokens source(folder_.file("t"));
  EXPECT_THAT(input_error([&] { check_vocabulary_of_start(source, 100); }), HasSubstr("token 1 has the id -1"));
}

TEST_F(Tokens, AreReadByManyThreads) {
  std::vector<int64_t> tokens(100'000);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int64_t>(i * i % 50021);
  const MegatronTokens source(write_u16_tokens(folder_, "t", tokens));
  std::vector<std::thread> threads;
  std::vector<int64_t> largest(4);
  std::vector<std::vector<int64_t>> seen(4);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      largest[t] = source.largest_token();
      seen[t] = read_all(source);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < 4; ++t) {
    EXPECT_EQ(largest[t], *std::max_element(tokens.begin(), tokens.end()));
    EXPECT_EQ(seen[t], tokens);
  }
}

TEST_F(Tokens, OpenByPrefixWithOrWithoutExtension) {
  const std::string prefix = write_u16_tokens(folder_, "set", {300});
  for (const char* extension : {"", ".bin", ".idx"})
    EXPECT_THAT(read_all(*open_tokens(prefix + extension)), ElementsAre(300));
  folder_.write("a.b", "x");
  EXPECT_THAT(read_all(*open_tokens(folder_.file("a.b"))), ElementsAre('x'));
}

TEST_F(Tokens, OfAFileOfThatVeryNameComeFirst) {
  const std::string prefix = write_u16_tokens(folder_, "set", {300});
  folder_.write("set", "x");
  EXPECT_THAT(read_all(*open_tokens(prefix)), ElementsAre('x'));
  EXPECT_THAT(read_all(*open_tokens(prefix + ".bin")), ElementsAre(300));
}

TEST_F(Tokens, ThatAreMissingSayWhatWasLookedFor) {
  const std::string prefix = write_u16_tokens(folder_, "corpus", {1});
  const std::string missing = folder_.file("corpsu");
  EXPECT_THAT(input_error([&] { open_tokens(missing); }),
              AllOf(HasSubstr("corpsu.bin"), HasSubstr("corpsu.idx"), HasSubstr("did you mean"), HasSubstr(prefix)));
  EXPECT_THAT(input_error([&] { open_tokens(missing + ".bin"); }), HasSubstr("did you mean"));
  EXPECT_THAT(input_error([&] { open_tokens("/no/such/folder/x"); }), HasSubstr("/no/such/folder/x.bin"));
  EXPECT_THAT(input_error([&] { open_tokens(""); }), HasSubstr("empty"));
  EXPECT_THAT(input_error([&] { open_tokens(folder_.path()); }), HasSubstr("is a folder"));

  fs::remove(prefix + ".idx");
  EXPECT_THAT(input_error([&] { open_tokens(prefix); }), HasSubstr("lacks its index"));
  EXPECT_THAT(input_error([&] { open_tokens(prefix + ".bin"); }), HasSubstr("lacks its index"));
  fs::rename(prefix + ".bin", prefix + ".idx");
  EXPECT_THAT(input_error([&] { open_tokens(prefix); }), HasSubstr("lacks its tokens"));
}

TEST_F(Tokens, AreNoFoldersPipesOrDevices) {
  EXPECT_THAT(input_error([&] { TextTokens text(folder_.path()); }), HasSubstr("is a folder"));
  EXPECT_THAT(input_error([&] { TextTokens text("/dev/null"); }), HasSubstr("regular file"));
  const std::string pipe = folder_.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(input_error([&] { open_tokens(pipe); }), HasSubstr("regular file"));
}

}  // namespace
}  // namespace layline::trainer::formats::test
