#include "layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include "layline/layout/layout_text.h"
#include "layline/layout/legality.h"

namespace layline::trainer {

namespace {

constexpr int64_t kMostRanks = 16;

using Setting = std::function<void(Trial&)>;
using Axis = std::vector<Setting>;  // the ways in which one axis differs from the default

template <typename T>
Axis values(T layout::Layout::* member, std::vector<T> list) {
  Axis axis;
  for (const T value : list) axis.push_back([member, value](Trial& trial) { trial.layout.*member = value; });
  return axis;
}

template <typename T>
Axis case_values(T TinyCase::* member, std::vector<T> list) {
  Axis axis;
  for (const T value : list) axis.push_back([member, value](Trial& trial) { trial.tiny.*member = value; });
  return axis;
}

Axis schedules() {
  Axis axis;
  for (const auto kind : {layout::ScheduleKind::kGpipe, layout::ScheduleKind::kZeroBubble}) {
    axis.push_back([kind](Trial& trial) {
      trial.layout.schedule = kind;
      trial.layout.pp = std::max<int64_t>(trial.layout.pp, 2);
    });
  }
  axis.push_back([](Trial& trial) {
    trial.layout.schedule = layout::ScheduleKind::kInterleaved;
    trial.layout.vp = 2;
    trial.layout.pp = std::max<int64_t>(trial.layout.pp, 2);
  });
  return axis;
}

Axis checkpointing() {
  Axis axis;
  for (const auto kind : {layout::Checkpointing::kSelective, layout::Checkpointing::kFull}) {
    axis.push_back([kind](Trial& trial) { trial.layout.checkpointing = kind; });
  }
  axis.push_back([](Trial& trial) {
    trial.layout.checkpointing = layout::Checkpointing::kFull;
    trial.layout.full_layers = 1;
  });
  return axis;
}

// Layers that nobody would choose: all but one on the last stage.
Axis splits() {
  Axis axis = values(&layout::Layout::split, {layout::SplitKind::kUniform, layout::SplitKind::kBalanced});
  axis.push_back([](Trial& trial) {
    trial.layout.pp = std::max<int64_t>(trial.layout.pp, 2);
    trial.layout.split = layout::SplitKind::kExplicit;
    const int64_t stages = trial.layout.num_virtual_stages();
    trial.layout.explicit_split.assign(static_cast<size_t>(stages), 1);
    trial.layout.explicit_split.back() = trial.tiny.num_layers - stages + 1;
  });
  return axis;
}

const std::vector<Axis>& axes() {
  static const std::vector<Axis> list = {
      values<int64_t>(&layout::Layout::dp, {2, 3, 4}),
      values<int64_t>(&layout::Layout::tp, {2, 4}),
      values<int64_t>(&layout::Layout::pp, {2, 3, 4}),
      schedules(),
      values<int64_t>(&layout::Layout::mb, {2, 3, 6}),
      {[](Trial& trial) {
        trial.layout.sp = true;
        trial.layout.tp = std::max<int64_t>(trial.layout.tp, 2);
      }},
      values(&layout::Layout::zero, {0}),
      checkpointing(),
      splits(),
      values(&layout::Layout::attention, {layout::AttentionKernel::kUnfused}),
      values(&layout::Layout::norm, {layout::NormKernel::kUnfused}),
      case_values<int64_t>(&TinyCase::num_layers, {5, 8}),
      case_values<int64_t>(&TinyCase::num_kv_heads, {2}),
      case_values<bool>(&TinyCase::tied, {true}),
  };
  return list;
}

bool is_wanted(const Trial& trial) {
  const spec::Job job = tiny_job(trial.tiny, trial.layout.world_size());
  return trial.layout.world_size() <= kMostRanks && layout::is_legal(trial.layout, job);
}

// Some settings look at what others did: later axes must not undo a split that fits the number of stages.
Trial with_settings(const std::vector<Setting>& settings) {
  Trial trial;
  for (const Setting& setting : settings) setting(trial);
  return trial;
}

}  // namespace

std::string to_text(const Trial& trial) {
  return fmt::format("L{} kv{} {} GB{} | {}", trial.tiny.num_layers, trial.tiny.num_kv_heads,
                     trial.tiny.tied ? "tied" : "untied", trial.tiny.global_batch, layout::to_text(trial.layout));
}

std::vector<Trial> every_axis_alone() {
  std::vector<Trial> trials;
  for (const Axis& axis : axes()) {
    for (const Setting& setting : axis) {
      const Trial trial = with_settings({setting});
      if (is_wanted(trial)) trials.push_back(trial);
    }
  }
  return trials;
}

std::vector<Trial> every_pair_of_settings() {
  std::vector<Trial> trials;
  std::set<std::string> seen;
  for (size_t a = 0; a < axes().size(); ++a) {
    for (size_t b = a + 1; b < axes().size(); ++b) {
      for (const Setting& first : axes()[a]) {
        for (const Setting& second : axes()[b]) {
          // Splits look at the stages and the layers: they come last.
          Trial trial = with_settings({first, second});
          if (!is_wanted(trial)) trial = with_settings({second, first});
          if (is_wanted(trial) && seen.insert(to_text(trial)).second) trials.push_back(trial);
        }
      }
    }
  }
  return trials;
}

std::vector<Trial> seeded_random(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Trial> trials;
  std::set<std::string> seen;
  while (static_cast<int64_t>(trials.size()) < count) {
    std::vector<Setting> settings;
    for (const Axis& axis : axes()) {
      const size_t choice = random() % (axis.size() + 1);
      if (choice < axis.size()) settings.push_back(axis[choice]);
    }
    const Trial trial = with_settings(settings);
    if (is_wanted(trial) && seen.insert(to_text(trial)).second) trials.push_back(trial);
  }
  return trials;
}

}  // namespace layline::trainer
