#include "layline/trainer/loop/meeting.h"

#include <c10/util/Logging.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "layline/base/error.h"
#include "layline/trainer/comm/rendezvous.h"

namespace layline::trainer::loop {

namespace {

// For the others to come, on a rank that knows that there will be no run.
constexpr std::chrono::milliseconds kToGiveUp = std::chrono::seconds(20);

// Everything that must be the same on all ranks, by its key in RUN.json.
std::map<std::string, std::string> settings_of(const config::RunConfig& config) {
  std::map<std::string, std::string> entries;
  const auto add = [&entries](const std::string& key, const nlohmann::json& value) {
    entries[key] = value.is_string() ? value.get<std::string>() : value.dump();
  };
  const nlohmann::json settings = nlohmann::json::parse(config::to_json(config));
  for (const auto& [key, value] : settings.items()) {
    if (!value.is_object()) add(key, value);
    for (auto inner = value.begin(); value.is_object() && inner != value.end(); ++inner) {
      add(fmt::format("{}.{}", key, inner.key()), *inner);
    }
  }
  return entries;
}

std::unique_ptr<comm::RunStore> come(const Launch& launch, std::chrono::milliseconds timeout) {
  // What it warns of is said by ranks in words of their own.
  constexpr int kErrors = 2;
  FLAGS_caffe2_log_level = std::max(FLAGS_caffe2_log_level, kErrors);
  return std::make_unique<comm::RunStore>(comm::Rendezvous{.rank = launch.rank,
                                                           .world_size = launch.world_size,
                                                           .host = launch.master_addr,
                                                           .port = launch.master_port,
                                                           .timeout = timeout});
}

// Whether all ranks say the same of whether they can start.
bool all_say(comm::RunStore& store, const char* can_start) {
  try {
    store.check_same({{"can start", can_start}});
    return true;
  } catch (const base::InputError&) {
    return false;
  }
}

}  // namespace

std::unique_ptr<comm::RunStore> meet(const config::RunConfig& config, const Launch& launch,
                                     std::chrono::milliseconds timeout) {
  std::unique_ptr<comm::RunStore> store;
  try {
    store = come(launch, timeout);
  } catch (const base::InputError&) {
    // Rank 1 speaks where rank 0 never came.
    if (launch.local_rank != 0 && launch.rank > 1) throw FailedElsewhere(true);
    throw;
  }
  if (!all_say(*store, "yes")) throw FailedElsewhere(true);
  try {
    store->check_same(settings_of(config));
  } catch (const base::InputError&) {
    if (launch.rank != 0) throw FailedElsewhere(true);
    throw;
  }
  return store;
}

void give_up(const std::string& mistake, const Launch& launch) {
  if (launch.world_size == 1) throw base::InputError(mistake);
  bool is_first = true, is_shared = true;
  try {
    const std::unique_ptr<comm::RunStore> store = come(launch, kToGiveUp);
    is_first = store->store()->add("mistake/" + mistake, 1) == 1;
    is_shared = all_say(*store, "no");
  } catch (const std::exception&) {  // who does not come is told nothing
  }
  if (!is_first) throw FailedElsewhere(true);
  throw base::InputError(is_shared ? mistake : fmt::format("rank {}: {}", launch.rank, mistake));
}

}  // namespace layline::trainer::loop
