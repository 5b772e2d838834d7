#include "layline/trainer/comm/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "layline/base/error.h"
#include "layline/trainer/comm/socket.h"
#include "tests/trainer/comm/backends.h"
#include "tests/trainer/comm/forked_ranks.h"

namespace layline::trainer::comm {
namespace {

using namespace std::chrono_literals;
using base::InputError;
using testing::AllOf;
using testing::HasSubstr;

Rendezvous meeting(int64_t rank, int64_t size, int port, std::chrono::milliseconds timeout = 5s) {
  return {.rank = rank, .world_size = size, .host = "localhost", .port = port, .timeout = timeout};
}

// body(rank, port) on a thread each; what each threw as InputError.
std::vector<std::string> messages_of_ranks(int64_t size, const std::function<void(int64_t, int)>& body) {
  const int port = free_port();
  std::vector<std::string> messages(size);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { messages[rank] = message_of<InputError>([&] { body(rank, port); }); });
  }
  for (std::thread& thread : threads) thread.join();
  return messages;
}

TEST(RunStore, RanksWithTheSameEntriesGoOn) {
  const auto messages = messages_of_ranks(4, [](int64_t rank, int port) {
    RunStore store(meeting(rank, 4, port));
    store.check_same({{"layout", "dp2 tp2"}, {"seed", "1"}, {"text", std::string(5000, 'x')}, {"empty", ""}});
    store.check_same({});
    EXPECT_EQ(store.address(), "127.0.0.1");
    store.check_same({{"end", ""}});
  });
  EXPECT_THAT(messages, testing::Each("nothing was thrown"));
}

TEST(RunStore, ARankThatDiffersIsNamedOnEveryRankWithTheEntryAndBothTexts) {
  const auto messages = messages_of_ranks(3, [](int64_t rank, int port) {
    RunStore store(meeting(rank, 3, port));
    store.check_same({{"layout", rank == 2 ? "dp2 tp1" : "dp1 tp2"}, {"seed", "1"}});
  });
  EXPECT_THAT(messages, testing::Each(HasSubstr("rank 2 has layout \"dp2 tp1\", rank 0 has \"dp1 tp2\"")));
}

TEST(RunStore, ADifferenceBehindTheFirstPageOfALongEntryIsFound) {
  const auto messages = messages_of_ranks(2, [](int64_t rank, int port) {
    RunStore store(meeting(rank, 2, port));
    std::string model(3000, 'm');
    model.push_back(rank == 0 ? 'a' : 'b');
    store.check_same({{"model", model}});
  });
  EXPECT_THAT(messages, testing::Each(AllOf(HasSubstr("rank 1 has model \"mmm"), HasSubstr("3001 bytes"))));
}

TEST(RunStore, AnEntryThatOneRankLacksIsADifference) {
  const auto messages = messages_of_ranks(2, [](int64_t rank, int port) {
    RunStore store(meeting(rank, 2, port));
    std::map<std::string, std::string> entries = {{"seed", "1"}};
    if (rank == 0) entries["precision"] = "bf16";
    store.check_same(entries);
  });
  EXPECT_THAT(messages, testing::Each(HasSubstr("rank 1 has precision nothing, rank 0 has \"bf16\"")));
}

TEST(RunStore, APortInUseIsNamed) {
  const int socket = listen_on(0, true);
  const int port = port_of(socket);
  EXPECT_THAT(message_of<InputError>([&] { RunStore store(meeting(0, 1, port)); }),
              AllOf(HasSubstr(std::to_string(port)), HasSubstr("Address already in use"), HasSubstr("another port")));
  close(socket);
}

TEST(RunStore, AnUnreachableMasterEndsWithinItsTimeoutAndSaysWhatToCheck) {
  const int port = free_port();
  const double seconds = seconds_of([&] {
    EXPECT_THAT(message_of<InputError>([&] { RunStore store(meeting(1, 2, port, 300ms)); }),
                AllOf(HasSubstr("127.0.0.1:" + std::to_string(port)), HasSubstr("rank 1 could not reach rank 0"),
                      HasSubstr("0.3 s"), HasSubstr("Connection refused"), HasSubstr("firewall")));
  });
  EXPECT_LT(seconds, 1.5);
}

TEST(RunStore, AServerThatDoesNotAnswerIsNoRank0) {
  const int socket = listen_on(0, true);
  const double seconds = seconds_of([&] {
    EXPECT_THAT(message_of<InputError>([&] { RunStore store(meeting(1, 2, port_of(socket), 300ms)); }),
                AllOf(HasSubstr("is not this run's rank 0"), HasSubstr("no answer within")));
  });
  EXPECT_LT(seconds, 2.5);
  close(socket);
}

TEST(RunStore, AnUnknownHostIsNamed) {
  Rendezvous rendezvous = meeting(1, 2, 29500, 200ms);
  rendezvous.host = "no-such-host.invalid";
  EXPECT_THAT(message_of<InputError>([&] { RunStore store(rendezvous); }), HasSubstr("no-such-host.invalid:29500"));
}

TEST(RunStore, ARankThatDoesNotComeIsNamed) {
  const auto messages = messages_of_ranks(2, [](int64_t rank, int port) {
    if (rank == 1) std::this_thread::sleep_for(100ms);
    RunStore store(meeting(rank, 4, port, 700ms));
  });
  EXPECT_THAT(messages[0], HasSubstr("ranks 2 and 3 of 4 did not come within 0.7 s"));
}

TEST(RunStore, WorldSizesThatDifferAreNamed) {
  const auto messages =
      messages_of_ranks(2, [](int64_t rank, int port) { RunStore store(meeting(rank, rank + 2, port)); });
  EXPECT_THAT(messages[0], HasSubstr("rank 1 was started with world size 3, rank 0 with 2"));
  EXPECT_THAT(messages[1], HasSubstr("rank 0 was started with world size 2, rank 1 with 3"));
}

TEST(RunStore, ARankGivenTwiceIsNamed) {
  const int port = free_port();
  std::thread first([&] {
    EXPECT_THAT(message_of<InputError>([&] { RunStore store(meeting(0, 3, port, 1500ms)); }), HasSubstr("rank 2"));
  });
  std::vector<std::string> messages(2);
  std::vector<std::thread> twins;
  for (int i = 0; i < 2; ++i) {
    twins.emplace_back([&, i] { messages[i] = message_of<InputError>([&] { RunStore s(meeting(1, 3, port, 1s)); }); });
  }
  first.join();
  for (std::thread& twin : twins) twin.join();
  EXPECT_THAT(messages, testing::Contains(HasSubstr("rank 1 has come twice")));
}

TEST(Socket, KnowsTheLoopbackAndTheWayToIt) {
  EXPECT_TRUE(is_loopback("localhost"));
  EXPECT_TRUE(is_loopback("127.0.1.1"));
  EXPECT_FALSE(is_loopback("10.0.0.1"));
  EXPECT_EQ(address_toward("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(address_toward("no-such-host.invalid"), "");
}

}  // namespace
}  // namespace layline::trainer::comm
