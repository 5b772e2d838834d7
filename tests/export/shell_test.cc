// What a script is read as, without being run.

#include "layline/export/shell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layline/base/error.h"
#include "layline/export/shell_words.h"

namespace layline::exporting {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> last_words(const std::string& script) {
  const ShellScript read = read_shell(script, "x.sh");
  return read.commands.empty() ? std::vector<std::string>{} : read.commands.back().words;
}

TEST(Shell, PutsVariablesIntoWords) {
  EXPECT_THAT(last_words("A=1\nB='two words'\nrun $A \"$B\" ${A}x $B"),
              ElementsAre("run", "1", "two words", "1x", "two", "words"));
  EXPECT_THAT(last_words("run ${A:-8} ${A-9} \"${A:-$((2*3))}\""), ElementsAre("run", "8", "9", "6"));
  EXPECT_THAT(last_words("A=4; run ${A:-8} ${A:+yes} ${B:+no}"), ElementsAre("run", "4", "yes"));
  EXPECT_THAT(last_words("export A=4 B=5\nrun $A$B"), ElementsAre("run", "45"));
  EXPECT_THAT(last_words("A=x\nA+=y\nrun $A"), ElementsAre("run", "xy"));
}

TEST(Shell, JoinsContinuedLinesAndSkipsComments) {
  EXPECT_THAT(last_words("run \\\n  --a 1 \\\n  --b=2 # not --c 3\n# run no\n"),
              ElementsAre("run", "--a", "1", "--b=2"));
  EXPECT_THAT(last_words("run \\\r\n  --a 1\r\n"), ElementsAre("run", "--a", "1"));
  EXPECT_THAT(last_words("run a#b '# c' \"# d\""), ElementsAre("run", "a#b", "# c", "# d"));
  EXPECT_THAT(last_words("ARGS=\"--a 1 \\\n  --b 2\"\nrun $ARGS"), ElementsAre("run", "--a", "1", "--b", "2"));
}

TEST(Shell, ReadsArrays) {
  EXPECT_THAT(last_words("A=(\n  --x 1  # one\n  # --y 2\n  --z 'a b'\n)\nrun \"${A[@]}\""),
              ElementsAre("run", "--x", "1", "--z", "a b"));
  EXPECT_THAT(last_words("A=(1 2)\nA+=(3)\nrun \"${A[@]}\" \"${A[*]}\" end"),
              ElementsAre("run", "1", "2", "3", "1", "2", "3", "end"));
  EXPECT_THAT(last_words("run \"$@\" $* end"), ElementsAre("run", "end"));
  EXPECT_THAT(last_words("A=()\nrun \"${A[@]}\" \"\" end"), ElementsAre("run", "", "end"));
}

// Megatron-LM's examples keep "--fp8-format hybrid" as one word of an array, which bash takes apart again.
TEST(Shell, TakesWordsOfAnArrayApartOutsideQuotes) {
  EXPECT_THAT(last_words("A=(\"--x 1\" '--y 2')\nrun ${A[@]} end"), ElementsAre("run", "--x", "1", "--y", "2", "end"));
  EXPECT_THAT(last_words("A=(\"--x 1\" '--y 2')\nrun \"${A[@]}\" end"), ElementsAre("run", "--x 1", "--y 2", "end"));
  EXPECT_THAT(last_words("A=(\"\" b)\nrun ${A[@]} end"), ElementsAre("run", "b", "end"));
}

TEST(Shell, QuotesOfADefaultAreNoPartOfIt) {
  EXPECT_THAT(last_words("run ${A:-\"optim\"} ${A:-'a}b'} \"${A:-\"c d\"}\""),
              ElementsAre("run", "optim", "a}b", "c d"));
  EXPECT_THAT(last_words("B=4\nA=${A:-\"$B\"}\nrun $A"), ElementsAre("run", "4"));
}

TEST(Shell, TakesDefaultsOfArgumentsThatAreNotGiven) {
  EXPECT_THAT(last_words("TP=${1:-4}\nrun $TP ${2:-\"b c\"} ${10-x} $1 ${1}"),
              ElementsAre("run", "4", "b", "c", "x", "$1", "${1}"));
}

TEST(Shell, Calculates) {
  EXPECT_THAT(last_words("G=8; N=4\nW=$(($G*$N))\nrun $W $((G * (N + 1) - 2 / 1)) $((7 % 4))"),
              ElementsAre("run", "32", "38", "3"));
  // What is not known stays as it is written.
  EXPECT_THAT(last_words("run $((X*2)) $((4/0)) $(nproc)"), ElementsAre("run", "$((X*2))", "$((4/0))", "$(nproc)"));
  EXPECT_EQ(arithmetic("9223372036854775807 + 1", {}), std::nullopt);
  EXPECT_EQ(arithmetic("-3 * -2", {}), 6);
  EXPECT_EQ(arithmetic("2 +", {}), std::nullopt);
  EXPECT_EQ(arithmetic(std::string(1000, '('), {}), std::nullopt);
}

TEST(Shell, KnowsSlurmsLines) {
  const ShellScript script =
      read_shell("#SBATCH --nodes=4 # four\n#SBATCH -N 6\n#SBATCH --gpus-per-node 8\nrun $SLURM_NNODES\n", "x");
  EXPECT_EQ(script.directives.at("nodes"), "6");
  EXPECT_EQ(script.directives.at("gpus-per-node"), "8");
  EXPECT_THAT(script.commands.back().words, ElementsAre("run", "6"));
}

TEST(Shell, KeepsHereDocumentsThatGoToFiles) {
  const ShellScript script =
      read_shell("C=ds.json\nM=4\ncat <<EOT > $C\n{\"micro\": $M, \"q\": \"x\"}\nEOT\nrun --config $C\n", "x");
  EXPECT_EQ(script.documents.at("ds.json"), "{\"micro\": 4, \"q\": \"x\"}\n");
  EXPECT_THAT(script.commands.back().words, ElementsAre("run", "--config", "ds.json"));
  EXPECT_EQ(read_shell("cat > f <<'E'\n$M\nE\n", "x").documents.at("f"), "$M\n");
}

TEST(Shell, GoesThroughBranchesAndSaysWhatTheyChange) {
  const ShellScript script =
      read_shell("TP=1\nif [ $# -gt 0 ]; then\n  TP=4\nfi\nfor MB in 1 2; do\n run $TP $MB\ndone\n", "x");
  EXPECT_THAT(script.commands.back().words, ElementsAre("run", "4", "1"));
  ASSERT_EQ(script.notes.size(), 2u);
  EXPECT_THAT(script.notes[0], HasSubstr("TP"));
  EXPECT_THAT(script.notes[1], HasSubstr("MB"));
}

TEST(Shell, SaysWhichOptionsABranchAdds) {
  const ShellScript script =
      read_shell("A=(--x 1)\nif [ $Z ]; then\n  A+=(--y 2)\n  S=--z\n  T=plain\nfi\nrun ${A[@]} $S\n", "x");
  EXPECT_THAT(script.commands.back().words, ElementsAre("run", "--x", "1", "--y", "2", "--z"));
  ASSERT_EQ(script.notes.size(), 2u);
  EXPECT_THAT(script.notes[0], HasSubstr("line 3: A gets options in a branch or a loop, --y"));
  EXPECT_THAT(script.notes[1], HasSubstr("line 4: S gets"));
}

TEST(Shell, TakesWhatFollowsATestForABranch) {
  const ShellScript script = read_shell("TP=1\n[ -n \"$X\" ] && TP=4\nPP=1\nPP=2\nrun $TP $PP\n", "x");
  EXPECT_THAT(script.commands.back().words, ElementsAre("run", "4", "2"));
  ASSERT_EQ(script.notes.size(), 1u);
  EXPECT_THAT(script.notes[0], HasSubstr("line 2: TP"));
}

TEST(Shell, SaysWhereAScriptDoesNotEnd) {
  const auto message_of = [](const std::string& script) -> std::string {
    try {
      read_shell(script, "x.sh");
    } catch (const base::InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message_of("a\nrun \"b\n"), HasSubstr("x.sh:3"));
  EXPECT_THAT(message_of("run 'b"), HasSubstr("'"));
  EXPECT_THAT(message_of("A=(1 2"), HasSubstr("("));
  EXPECT_THAT(message_of("run ${A"), HasSubstr("{"));
  EXPECT_THAT(message_of("cat <<E > f\nx\n"), HasSubstr("E"));
  std::string doubling = "A=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 40; ++i) doubling += "A=$A$A\n";
  EXPECT_THAT(message_of(doubling), HasSubstr("64 MB"));
}

}  // namespace
}  // namespace layline::exporting
