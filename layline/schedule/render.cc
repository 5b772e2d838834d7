#include "layline/schedule/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

namespace layline::schedule {
namespace {

constexpr size_t kNumLetters = 6;
constexpr std::array<char, kNumLetters> kLetters = {'F', 'B', 'W', 'f', 'b', 'w'};
constexpr double kMicroseconds = 1e6;

size_t letter_of(const Instruction& step) {
  const size_t letter = step.op == Op::kForward ? 0 : step.op == Op::kBackwardWeight ? 2 : 1;
  return letter + (step.chunk > 0 ? 3 : 0);
}

// Seconds of each letter in each column.
class Columns {
 public:
  Columns(size_t width, double column_seconds) : seconds_(width), column_seconds_(column_seconds) {}

  void add(const TimedInstruction& step) {
    const size_t letter = letter_of(step.instruction);
    const auto last = static_cast<double>(seconds_.size() - 1);
    const auto column_at = [&](double seconds) {
      return static_cast<size_t>(std::clamp(std::floor(seconds / column_seconds_), 0.0, last));
    };
    for (size_t i = column_at(step.start_seconds); i <= column_at(step.end_seconds); ++i) {
      const double from = std::max(step.start_seconds, static_cast<double>(i) * column_seconds_);
      const double to = std::min(step.end_seconds, static_cast<double>(i + 1) * column_seconds_);
      seconds_[i][letter] += std::max(0.0, to - from);
    }
  }

  std::string text() const {
    std::string row;
    for (const auto& letters : seconds_) {
      double idle = column_seconds_;
      for (const double seconds : letters) idle -= seconds;
      const auto most = std::max_element(letters.begin(), letters.end());
      row += *most > 0 && *most >= idle ? kLetters[static_cast<size_t>(most - letters.begin())] : '.';
    }
    return row;
  }

 private:
  std::vector<std::array<double, kNumLetters>> seconds_;
  double column_seconds_;
};

nlohmann::json trace_event(size_t rank, const TimedInstruction& step, const Timeline& timeline) {
  const Instruction& at = step.instruction;
  constexpr std::array kNames = {"F", "B", "B input", "W", "send F", "recv F", "send B", "recv B"};
  return {{"name", fmt::format("{} {}", kNames[static_cast<size_t>(at.op)], at.micro_batch)},
          {"cat", is_message(at.op) ? "message" : "compute"},
          {"ph", "X"},
          {"pid", rank},
          {"tid", is_message(at.op) ? 1 : 0},
          {"ts", step.start_seconds * kMicroseconds},
          {"dur", (step.end_seconds - step.start_seconds) * kMicroseconds},
          {"args",
           {{"micro_batch", at.micro_batch}, {"virtual_stage", at.chunk * timeline.pp + static_cast<int64_t>(rank)}}}};
}

}  // namespace

std::string to_picture(const Timeline& timeline, int width) {
  constexpr size_t kLeastWidth = 20;
  const size_t digits = std::to_string(timeline.ranks.size() - 1).size();
  const size_t label = digits + 7;  // "rank " before the number, two blanks after it
  const size_t columns = std::max(kLeastWidth, static_cast<size_t>(std::max(0, width))) - label;
  std::string picture;
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    Columns row(columns, std::max(timeline.makespan_seconds, 1e-300) / static_cast<double>(columns));
    for (const TimedInstruction& step : timeline.ranks[rank].steps) {
      if (!is_message(step.instruction.op)) row.add(step);
    }
    picture += fmt::format("rank {:>{}}  {}\n", rank, digits, row.text());
  }
  return picture;
}

std::string to_chrome_trace(const Timeline& timeline) {
  nlohmann::json events = nlohmann::json::array();
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    events.push_back({{"name", "process_name"},
                      {"ph", "M"},
                      {"pid", rank},
                      {"args", {{"name", fmt::format("pipeline rank {}", rank)}}}});
    for (const TimedInstruction& step : timeline.ranks[rank].steps) {
      events.push_back(trace_event(rank, step, timeline));
    }
    for (const auto& [seconds, held] : activations_over_time(timeline.ranks[rank])) {
      events.push_back({{"name", "activations"},
                        {"ph", "C"},
                        {"pid", rank},
                        {"ts", seconds * kMicroseconds},
                        {"args", {{"held", held}}}});
    }
  }
  return nlohmann::json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}.dump();
}

}  // namespace layline::schedule
