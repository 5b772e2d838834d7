#include "apps/layline_train/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "layline/base/error.h"

namespace layline::app {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Set = std::map<std::string, std::string>;

trainer::loop::Launch find(const Set& set) {
  return find_launch([&](const char* name) {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

std::string error_of(const Set& set) {
  try {
    find(set);
  } catch (const base::InputError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

Set with(Set set, const Set& more) {
  for (const auto& [name, value] : more) set[name] = value;
  return set;
}

const Set kTorchrun = {{"RANK", "5"},
                       {"WORLD_SIZE", "8"},
                       {"LOCAL_RANK", "1"},
                       {"LOCAL_WORLD_SIZE", "4"},
                       {"MASTER_ADDR", "node7"},
                       {"MASTER_PORT", "1234"}};
const Set kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                      {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                      {"PMIX_NAMESPACE", "prterun-node7-1234@1"}};
const Set kSlurm = {{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"}, {"SLURM_JOB_ID", "4711"}};

TEST(Launch, WithoutALauncherThisIsTheOnlyRank) {
  for (const Set& set : {Set{}, Set{{"SLURM_NTASKS", "4"}}, Set{{"SLURM_PROCID", "0"}}, Set{{"RANK", ""}}}) {
    const auto launch = find(set);
    EXPECT_EQ(launch.rank, 0);
    EXPECT_EQ(launch.world_size, 1);
    EXPECT_EQ(launch.local_rank, 0);
    EXPECT_EQ(launch.master_addr, "127.0.0.1");
    EXPECT_EQ(launch.master_port, 29500);
  }
}

TEST(Launch, TorchrunSaysEverything) {
  const auto launch = find(kTorchrun);
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.world_size, 8);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.master_addr, "node7");
  EXPECT_EQ(launch.master_port, 1234);
}

TEST(Launch, ThePortWhereTorchrunServesIsLeftToIt) {
  const Set agent = with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "none"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  const int port = find(agent).master_port;
  EXPECT_GE(port, 20000);
  EXPECT_LT(port, 30000);
  EXPECT_EQ(find(with(agent, {{"RANK", "0"}, {"LOCAL_RANK", "0"}})).master_port, port);
  EXPECT_NE(find(with(agent, {{"TORCHELASTIC_RESTART_COUNT", "1"}})).master_port, port);
  EXPECT_NE(find(with(agent, {{"MASTER_PORT", "1235"}})).master_port, port);
  EXPECT_EQ(find(with(agent, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).master_port, 1234);
}

TEST(Launch, CoresAreSharedUnlessTheNumberOfThreadsIsSet) {
  EXPECT_TRUE(find(kTorchrun).shares_cores);
  EXPECT_FALSE(find(with(kTorchrun, {{"OMP_NUM_THREADS", "3"}})).shares_cores);
}

TEST(Launch, MpirunAndTorchrunStartTheirRanksThemselves) {
  const auto launched = [](const Set& set) {
    return is_launched([&](const char* name) {
      const auto found = set.find(name);
      return found == set.end() ? std::nullopt : std::optional<std::string>(found->second);
    });
  };
  EXPECT_TRUE(launched(kOpenMpi));
  EXPECT_TRUE(launched(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "none"}})));
  // By hand, as with nohup, they may outlive their shell.
  EXPECT_FALSE(launched({{"RANK", "0"}, {"WORLD_SIZE", "2"}}));
  EXPECT_FALSE(launched({}));
}

TEST(Launch, RankAndWorldSizeAreEnoughOnOneMachine) {
  const auto launch = find({{"RANK", "1"}, {"WORLD_SIZE", "2"}});
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.master_addr, "127.0.0.1");
  EXPECT_EQ(launch.master_port, 29500);
}

TEST(Launch, OpenMpiGivesRanksAndAPortOfTheJob) {
  const auto launch = find(kOpenMpi);
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.world_size, 4);
  EXPECT_EQ(launch.local_rank, 2);
  EXPECT_EQ(launch.master_addr, "127.0.0.1");
  EXPECT_GE(launch.master_port, 20000);
  EXPECT_LT(launch.master_port, 30000);
  EXPECT_EQ(find(with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "0"}})).master_port, launch.master_port);
  EXPECT_NE(find(with(kOpenMpi, {{"PMIX_NAMESPACE", "prterun-node7-1235@1"}})).master_port, launch.master_port);
  EXPECT_EQ(find(with(kOpenMpi, {{"MASTER_PORT", "99"}})).master_port, 99);
  EXPECT_EQ(find(with(kOpenMpi, {{"MASTER_ADDR", "node1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}})).master_addr, "node1");
}

TEST(Launch, SlurmGivesRanksAndThePlaceOfRankZero) {
  const auto launch = find(kSlurm);
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.world_size, 4);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.master_addr, "127.0.0.1");
  EXPECT_GE(launch.master_port, 20000);
  EXPECT_LT(launch.master_port, 30000);
  const Set two_nodes = with(kSlurm, {{"SLURM_NNODES", "2"}, {"SLURM_JOB_NODELIST", "node[07-08]"}});
  EXPECT_EQ(find(two_nodes).master_addr, "node07");
  EXPECT_EQ(find(with(two_nodes, {{"SLURM_STEP_NODELIST", "node08"}})).master_addr, "node08");
  EXPECT_EQ(find(with(two_nodes, {{"MASTER_ADDR", "10.0.0.1"}})).master_addr, "10.0.0.1");
  EXPECT_EQ(find(with(kSlurm, {{"SLURM_NNODES", "2"}, {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.2"}})).master_addr,
            "10.0.0.2");
  // A step on one node of a larger job.
  EXPECT_EQ(find(with(two_nodes, {{"SLURM_STEP_NUM_NODES", "1"}})).master_addr, "127.0.0.1");
}

TEST(Launch, TheInnerLauncherCounts) {
  EXPECT_EQ(find(with(kOpenMpi, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}})).world_size, 4);
  EXPECT_EQ(find(with(with(kTorchrun, kSlurm), {{"TORCHELASTIC_RUN_ID", "none"}})).world_size, 8);
  EXPECT_EQ(find(with(with(kTorchrun, kOpenMpi), {{"TORCHELASTIC_RUN_ID", "none"}})).rank, 5);
  EXPECT_EQ(find(with(kTorchrun, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}})).rank, 5);
  EXPECT_EQ(find(with(kSlurm, {{"RANK", "3"}, {"WORLD_SIZE", "4"}})).rank, 3);
}

TEST(Launch, ContradictionsAreTheUsersToMend) {
  EXPECT_THAT(error_of(with(kSlurm, {{"RANK", "0"}, {"WORLD_SIZE", "1"}})),
              AllOf(HasSubstr("rank 0 of 1 by RANK and WORLD_SIZE"), HasSubstr("3 of 4 by SLURM_PROCID")));
  EXPECT_THAT(error_of(with(kOpenMpi, {{"RANK", "0"}, {"WORLD_SIZE", "4"}})),
              HasSubstr("2 of 4 by OMPI_COMM_WORLD_RANK"));
}

TEST(Launch, BadVariablesAreNamed) {
  const std::pair<Set, const char*> table[] = {
      {{{"RANK", "0"}}, "RANK: is set, but WORLD_SIZE is not"},
      {{{"WORLD_SIZE", "2"}}, "WORLD_SIZE: is set, but RANK is not"},
      {{{"RANK", "x"}, {"WORLD_SIZE", "2"}}, "RANK: "},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK: "},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, "RANK: "},
      {{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, "WORLD_SIZE: "},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2.5"}}, "WORLD_SIZE: "},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "a"}}, "LOCAL_RANK: "},
      {{{"MASTER_PORT", "65536"}}, "MASTER_PORT: "},
      {{{"MASTER_PORT", "http"}}, "MASTER_PORT: "},
      {{{"OMPI_COMM_WORLD_RANK", "0"}}, "OMPI_COMM_WORLD_RANK: is set, but OMPI_COMM_WORLD_SIZE is not"},
      {{{"SLURM_PROCID", "9"}, {"SLURM_NTASKS", "4"}}, "SLURM_PROCID: "},
  };
  for (const auto& [set, message] : table) EXPECT_THAT(error_of(set), HasSubstr(message));
}

TEST(Launch, SeveralMachinesNeedAnAddress) {
  Set set = kTorchrun;
  set.erase("MASTER_ADDR");
  EXPECT_THAT(error_of(set), HasSubstr("MASTER_ADDR: is not set"));
  EXPECT_THAT(error_of(with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}})), HasSubstr("mpirun -x MASTER_ADDR=HOST"));
  EXPECT_THAT(error_of(with(kSlurm, {{"SLURM_NNODES", "2"}})), HasSubstr("MASTER_ADDR: is not set"));
}

TEST(NodeLists, BeginWithTheirFirstHost) {
  const std::pair<const char*, const char*> table[] = {
      {"node7", "node7"},
      {"node7,node8", "node7"},
      {"node[07-12]", "node07"},
      {"node[3,9-11]", "node3"},
      {"rack[2-3]n[07-09,12],login", "rack2n07"},
      {"a-b-[1-2].x.org", "a-b-1.x.org"},
      {"gpu-a[001-004],gpu-b1", "gpu-a001"},
  };
  for (const auto& [list, host] : table) EXPECT_EQ(first_host(list), host) << list;
  EXPECT_THROW(first_host("node[1-2"), base::InputError);
}

}  // namespace
}  // namespace layline::app
