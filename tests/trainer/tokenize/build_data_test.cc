#include "layline/trainer/tokenize/build_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/trainer/formats/megatron_tokens.h"
#include "layline/trainer/tokenize/documents.h"
#include "tests/trainer/formats/files.h"

namespace layline::trainer::tokenize {
namespace {

namespace fs = std::filesystem;
using formats::MegatronTokens;
using formats::TokenType;
using Tokens = std::vector<int64_t>;
using testing::ElementsAre;
using testing::HasSubstr;

const auto kNever = [] { return false; };

using Folder = formats::test::TemporaryFolder;

std::vector<std::string> names_in(const Folder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

BuildOptions options_for(const std::vector<std::string>& inputs, const std::string& output) {
  BuildOptions options;
  options.inputs = inputs;
  options.output = output;
  return options;
}

Tokens tokens_of(const std::string& prefix) {
  const MegatronTokens source(prefix);
  Tokens tokens(static_cast<size_t>(source.num_tokens()));
  source.read(0, tokens);
  return tokens;
}

Tokens bytes_of(const std::string& text) {
  Tokens tokens;
  for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
  return tokens;
}

std::string message_of(const BuildOptions& options) {
  try {
    build_data(options, nullptr, kNever);
  } catch (const base::InputError& error) {
    return error.what();
  }
  return "";
}

TEST(BuildData, ATextFileIsOneDocumentOfItsBytes) {
  const Folder folder;
  const std::string text = "In the beginning\n\xff\x01 w\xc3\xa9 began\n";
  BuildOptions options = options_for({folder.write("a.txt", text)}, folder.file("out"));
  options.piece_bytes = 5;
  const BuildResult result = build_data(options, nullptr, kNever);
  EXPECT_TRUE(result.is_complete);
  EXPECT_EQ(result.type, TokenType::kU8);
  EXPECT_EQ(tokens_of(options.output), bytes_of(text));
  EXPECT_EQ(MegatronTokens(options.output).index().num_documents, 1);
  EXPECT_THAT(names_in(folder), ElementsAre("a.txt", "out.bin", "out.idx"));
}

TEST(BuildData, ALineOfJsonIsADocument) {
  const Folder folder;
  const std::string lines =
      "{\"text\": \"a\\u00e9\\n\", \"id\": 3}\r\n\n{\"id\": 4, \"text\": \"\"}\n{\"text\": \"bc\"}";
  BuildOptions options = options_for({folder.write("a.jsonl", lines)}, folder.file("out"));
  options.appends_end_of_document = true;
  const BuildResult result = build_data(options, nullptr, kNever);
  EXPECT_EQ(result.num_documents, 2);
  EXPECT_EQ(result.num_empty_documents, 1);
  EXPECT_EQ(result.type, TokenType::kU16);
  EXPECT_THAT(tokens_of(options.output), ElementsAre('a', 0xc3, 0xa9, '\n', 256, 'b', 'c', 256));
  EXPECT_EQ(MegatronTokens(options.output).index().num_sequences, 2);
}

TEST(BuildData, FilesFollowOneAnother) {
  const Folder folder;
  const BuildOptions options = options_for(
      {folder.write("b.txt", "bb"), folder.write("empty.txt", ""), folder.write("a.jsonl", "{\"text\":\"a\"}\n")},
      folder.file("out"));
  build_data(options, nullptr, kNever);
  EXPECT_THAT(tokens_of(options.output), ElementsAre('b', 'b', 'a'));
}

TEST(BuildData, HoldsIdsInTheTypeThatIsAskedFor) {
  for (const TokenType type : {TokenType::kU8, TokenType::kU16, TokenType::kI32, TokenType::kI64}) {
    const Folder folder;
    BuildOptions options = options_for({folder.write("a.txt", "\xff z")}, folder.file("out"));
    options.type = type;
    build_data(options, nullptr, kNever);
    EXPECT_EQ(MegatronTokens(options.output).index().type, type);
    EXPECT_THAT(tokens_of(options.output), ElementsAre(255, ' ', 'z'));
  }
  const Folder folder;
  BuildOptions options = options_for({folder.write("a.txt", "a")}, folder.file("out"));
  options.type = TokenType::kU8;
  options.appends_end_of_document = true;
  EXPECT_THAT(message_of(options), HasSubstr("--dtype: cannot hold the ids of this tokenizer, which go to 256"));
}

TEST(BuildData, SaysWhereJsonIsWrong) {
  const Folder folder;
  for (const auto& [line, what] :
       {std::pair{"{\"text\": 3}", "\"text\" is no text"}, std::pair{"{\"body\": \"x\"}", "has no \"text\""},
        std::pair{"[1]", "is no JSON object"}, std::pair{"{\"text\": \"a", "is no JSON"},
        std::pair{"{\"text\": \"\xff\"}", "is no JSON"}, std::pair{"{\"text\": \"a\"} {}", "is no JSON"}}) {
    const std::string good = "{\"text\": \"fine\"}\n";
    const BuildOptions options = options_for({folder.write("a.jsonl", good + "\n" + line)}, folder.file("out"));
    const std::string message = message_of(options);
    EXPECT_THAT(message, HasSubstr("a.jsonl, line 3")) << line;
    EXPECT_THAT(message, HasSubstr(what)) << line;
    for (const char* ending : {"bin", "json", "sequences"}) fs::remove(folder.file("out.building.") + ending);
  }
}

TEST(BuildData, LeavesWhatIsThere) {
  const Folder folder;
  const BuildOptions options = options_for({folder.write("a.txt", "a")}, folder.file("out"));
  folder.write("out.idx", "mine");
  EXPECT_THAT(message_of(options), HasSubstr("out.idx: is there already"));
  EXPECT_EQ(base::read_file(folder.file("out.idx")), "mine");
  EXPECT_THAT(names_in(folder), ElementsAre("a.txt", "out.idx"));
  EXPECT_THAT(message_of(options_for({folder.file("none.txt")}, folder.file("other"))), HasSubstr("none.txt"));
  EXPECT_THAT(message_of(options_for({folder.write("b.txt", "")}, folder.file("other"))), HasSubstr("has no text"));
}

std::string many_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "{\"text\": \"line " + std::to_string(i * i) + "\"}\n";
  return text;
}

// Cancelled again and again at other places, or ended without a last note as a kill does, it comes to the same files.
TEST(BuildData, ThatWasEndedGoesOnToTheSameFiles) {
  const Folder folder;
  const std::string input = folder.write("a.jsonl", many_lines(2000));
  BuildOptions options = options_for({input}, folder.file("whole"));
  options.piece_bytes = 700;
  build_data(options, nullptr, kNever);
  options.output = folder.file("parts");
  options.sync_bytes = 1500;
  int num_builds = 0;
  for (bool is_complete = false; !is_complete; ++num_builds) {
    int left = 7 + num_builds;
    is_complete = build_data(options, nullptr, [&left] { return left-- == 0; }).is_complete;
    if (is_complete) break;
    // As if killed while it wrote on.
    base::write_file_atomically(folder.file("parts.building.bin"),
                                base::read_file(folder.file("parts.building.bin")) + "torn");
    base::write_file_atomically(folder.file("parts.building.sequences"),
                                base::read_file(folder.file("parts.building.sequences")) + "torn");
    EXPECT_FALSE(fs::exists(options.output + ".idx"));
  }
  EXPECT_GT(num_builds, 3);
  for (const char* ending : {".bin", ".idx"}) {
    EXPECT_EQ(base::read_file(folder.file("parts") + ending), base::read_file(folder.file("whole") + ending));
  }
}

TEST(BuildData, ThatWasEndedIsNotMixedWithOtherOptions) {
  const Folder folder;
  BuildOptions options = options_for({folder.write("a.jsonl", many_lines(100))}, folder.file("out"));
  options.piece_bytes = 100;
  int left = 3;
  EXPECT_FALSE(build_data(options, nullptr, [&left] { return left-- == 0; }).is_complete);
  options.appends_end_of_document = true;
  EXPECT_THAT(message_of(options), HasSubstr("is of a build with other input, or with other options"));
}

TEST(BuildData, OfTwoAtOnceOneIsRefused) {
  const Folder folder;
  BuildOptions options = options_for({folder.write("a.jsonl", many_lines(100))}, folder.file("out"));
  options.piece_bytes = 100;
  std::string refusal;
  build_data(options, nullptr, [&] {
    if (refusal.empty()) refusal = message_of(options);
    return false;
  });
  EXPECT_THAT(refusal, HasSubstr("another process builds this data set"));
  EXPECT_EQ(MegatronTokens(options.output).index().num_documents, 100);
}

RC_GTEST_PROP(Cut, KeepsEveryByteOnce, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::element('a', '\n', '\xc3', '\xa9', '\xf0', '\x9f'));
  const bool cuts_lines = *rc::gen::arbitrary<bool>();
  const int64_t piece_bytes = *rc::gen::inRange<int64_t>(1, 20);
  int64_t end = 0;
  for (const Piece& piece : cut(text, 0, cuts_lines, piece_bytes)) {
    RC_ASSERT(piece.begin_bytes == end);
    RC_ASSERT(piece.end_bytes > end);
    end = piece.end_bytes;
    const bool ends_line = end == static_cast<int64_t>(text.size()) || text[static_cast<size_t>(end) - 1] == '\n';
    RC_ASSERT(cuts_lines || ends_line);
    if (cuts_lines) RC_ASSERT(piece.end_bytes - piece.begin_bytes <= 2 * piece_bytes + 4);
  }
  RC_ASSERT(end == static_cast<int64_t>(text.size()));
}

RC_GTEST_PROP(Utf8, IsWrongWhereTheFirstWrongCharacterBegins, ()) {
  const auto parts =
      *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>("a", "\xc3\xa9", "\xe2\x82\xac"));
  const std::string good = std::accumulate(parts.begin(), parts.end(), std::string());
  RC_ASSERT(first_invalid_utf8(good) == -1);
  const std::string rest = *rc::gen::element<std::string>("", "abc", "\xc3\xa9");
  RC_ASSERT(first_invalid_utf8(good + "\xff" + rest) == static_cast<int64_t>(good.size()));
}

// A model of a few pieces, made here.
class SentencePiece : public testing::Test {
 protected:
  static std::string model(const Folder& folder) {
    std::string corpus;
    for (int i = 0; i < 300; ++i) corpus += "the quick brown fox " + std::to_string(i) + " jumps over the lazy dog\n";
    const std::string arguments = "--input=" + folder.write("corpus.txt", corpus) +
                                  " --model_prefix=" + folder.file("m") +
                                  " --vocab_size=60 --model_type=bpe --minloglevel=2";
    EXPECT_TRUE(sentencepiece::SentencePieceTrainer::Train(arguments).ok());
    return folder.file("m.model");
  }
};

TEST_F(SentencePiece, GivesTheLibrarysIds) {
  const Folder folder;
  const std::string name = model(folder);
  sentencepiece::SentencePieceProcessor processor;
  ASSERT_TRUE(processor.Load(name).ok());
  BuildOptions options = options_for(
      {folder.write("a.jsonl", "{\"text\":\"the quick\"}\n{\"text\":\"lazy \xc3\xa9 fox\"}\n")}, folder.file("out"));
  options.tokenizer = name;
  options.appends_end_of_document = true;
  EXPECT_EQ(build_data(options, nullptr, kNever).num_documents, 2);
  Tokens expected;
  for (const char* text : {"the quick", "lazy \xc3\xa9 fox"}) {
    for (const int id : processor.EncodeAsIds(text)) expected.push_back(id);
    expected.push_back(processor.eos_id());
  }
  EXPECT_EQ(tokens_of(options.output), expected);
}

TEST_F(SentencePiece, RefusesWhatIsNoModelAndTextThatIsNoUtf8) {
  const Folder folder;
  BuildOptions options = options_for({folder.write("a.txt", "good\nbad \xff\n")}, folder.file("out"));
  options.tokenizer = folder.write("wrong.model", "no model");
  EXPECT_THAT(message_of(options), HasSubstr("wrong.model: is no SentencePiece model"));
  options.tokenizer = model(folder);
  EXPECT_THAT(message_of(options), HasSubstr("a.txt, line 2: byte 9 is no UTF-8"));
}

}  // namespace
}  // namespace layline::trainer::tokenize
