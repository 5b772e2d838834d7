// `layline data` as a user meets it.
#include <nlohmann/json.hpp>

#include "tests/apps/program.h"

namespace layline::test {
namespace {

class Data : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    write_text(path("corpus.jsonl"),
               "{\"text\": \"In the beginning\"}\n{\"text\": \"\"}\n{\"text\": \"was the word\"}\n");
  }
};

TEST_F(Data, BuildInfoAndCheck) {
  const Result built = layline("data build corpus.jsonl --output corpus");
  EXPECT_EQ(built.code, 0) << built.err;
  EXPECT_TRUE(has(built.out, "corpus.bin, corpus.idx: 2 documents, 28 tokens (u8, 28 B); 1 empty ones left out"))
      << built.out;
  const Result info = layline("data info corpus");
  EXPECT_TRUE(has(info.out, "28 of u8, 28 B")) << info.out;
  EXPECT_TRUE(has(info.out, "2 in 2 sequences, 0 empty")) << info.out;
  const nlohmann::json json = nlohmann::json::parse(layline("data check corpus --json").out);
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["num_tokens"], 28);
  EXPECT_EQ(json["largest_token"], 'w');
}

TEST_F(Data, CheckNamesTheFirstIdThatIsOutOfRange) {
  EXPECT_EQ(layline("data build corpus.jsonl --output corpus --append-eod").code, 0);
  EXPECT_EQ(layline("data check corpus --vocab-size 257").code, 0);
  expect_error(layline("data check corpus --vocab-size 256"),
               {"corpus.bin: token 16 has the id 256; a vocabulary of 256 has ids 0 to 255"});
  expect_error(layline("data check none"), {"none"});
}

TEST_F(Data, BadInputIsNamed) {
  expect_error(layline("data build none.jsonl --output corpus"), {"none.jsonl"});
  write_text(path("bad.jsonl"), "{\"text\": \"a\"}\n{\"text\"}\n");
  expect_error(layline("data build bad.jsonl --output corpus"), {"bad.jsonl, line 2", "is no JSON"});
  expect_error(layline("data build corpus.jsonl --output corpus --json-key body"), {"line 1", "has no \"body\""});
  expect_error(layline("data build corpus.jsonl --output corpus --tokenizer corpus.jsonl"),
               {"is no SentencePiece model"});
  expect_error(layline("data build corpus.jsonl --output none/corpus"), {"none/corpus"});
}

TEST_F(Data, ThatWasKilledIsBuiltOnToTheSameFiles) {
  std::string text;
  for (int i = 0; i < 400000; ++i) text += "{\"text\": \"line " + std::to_string(i) + " of a long file\"}\n";
  write_text(path("long.jsonl"), text);
  EXPECT_EQ(layline("data build long.jsonl --output whole").code, 0);
  for (int i = 1; i <= 4; ++i) {
    shell("{} data build long.jsonl --output killed & pid=$!; sleep 0.0" + std::to_string(2 * i) +
          "; kill -9 $pid; wait $pid");
    if (std::filesystem::exists(path("killed.idx"))) break;
  }
  if (!std::filesystem::exists(path("killed.idx"))) {
    const Result result = layline("data build long.jsonl --output killed");
    EXPECT_EQ(result.code, 0) << result.err;
  }
  for (const char* ending : {".bin", ".idx"}) {
    EXPECT_EQ(read_text(path("killed") + ending), read_text(path("whole") + ending));
  }
}

}  // namespace
}  // namespace layline::test
