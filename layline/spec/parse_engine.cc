// Engines from JSON. A key is a member of Engine; what a file leaves out keeps the member's default.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "layline/spec/json_object.h"
#include "layline/spec/registry.h"

namespace layline::spec {
namespace {

constexpr std::array<std::string_view, 2> kReductionNames = {"all-reduce", "reduce-scatter"};
constexpr std::array<std::string_view, 2> kWorkingSetNames = {"share-of-layer", "operators"};
constexpr std::array<std::string_view, 2> kLogitsNames = {"vocab-parallel", "gathered"};

struct NumberKey {
  const char* key;
  double Engine::* member;
  double upper;
};

constexpr NumberKey kNumbers[] = {
#define LAYLINE_ENGINE_NUMBER(member, upper) {#member, &Engine::member, upper},
#include "layline/spec/engine_keys.inc"
#undef LAYLINE_ENGINE_NUMBER
};

struct FlagKey {
  const char* key;
  bool Engine::* member;
};

constexpr FlagKey kFlags[] = {
#define LAYLINE_ENGINE_FLAG(member) {#member, &Engine::member},
#include "layline/spec/engine_keys.inc"
#undef LAYLINE_ENGINE_FLAG
};

template <typename Enum, typename Names>
void read_choice(JsonObject& object, const char* key, const Names& names, Enum& member) {
  if (object.has(key)) member = static_cast<Enum>(object.choice(key, names));
}

template <typename Enum, typename Names>
void read_choices(JsonObject& object, const char* key, const Names& names, std::vector<Enum>& member) {
  if (!object.has(key)) return;
  member.clear();
  for (const size_t index : object.choices(key, names)) member.push_back(static_cast<Enum>(index));
  if (member.empty()) object.fail(key, "found an empty list, want at least one entry");
}

void check_alignment(const JsonObject& object, const Engine& engine) {
  if (engine.bucket_alignment_bytes < 1) {
    object.fail("bucket_alignment_bytes", fmt::format("found {}, want at least 1", engine.bucket_alignment_bytes));
  }
}

template <typename Enum>
void check_default(const JsonObject& object, const char* key, Enum value, const std::vector<Enum>& has) {
  if (std::find(has.begin(), has.end(), value) == has.end()) {
    object.fail(key, fmt::format("{} is not among what the engine has", name_of(value)));
  }
}

void read_lists(JsonObject& object, Engine& engine) {
  if (object.has("zero_stages")) {
    engine.zero_stages.clear();
    for (const int64_t stage : object.wholes("zero_stages", 0, 3))
      engine.zero_stages.push_back(static_cast<int>(stage));
    if (engine.zero_stages.empty()) object.fail("zero_stages", "found an empty list, want some of 0, 1, 2, 3");
  }
  read_choices(object, "schedules", kScheduleNames, engine.schedules);
  read_choices(object, "checkpointing", kCheckpointingNames, engine.checkpointing);
  read_choices(object, "attention_kernels", kAttentionNames, engine.attention_kernels);
  read_choices(object, "norm_kernels", kNormNames, engine.norm_kernels);
  read_choices(object, "splits", kSplitNames, engine.splits);
  read_choices(object, "precisions", kPrecisionNames, engine.precisions);
  read_choice(object, "default_split", kSplitNames, engine.default_split);
  read_choice(object, "default_attention", kAttentionNames, engine.default_attention);
  read_choice(object, "default_norm", kNormNames, engine.default_norm);
  check_default(object, "default_split", engine.default_split, engine.splits);
  check_default(object, "default_attention", engine.default_attention, engine.attention_kernels);
  check_default(object, "default_norm", engine.default_norm, engine.norm_kernels);
}

}  // namespace

Engine parse_engine(std::string_view json, const std::string& where) {
  const nlohmann::json value = parse_strict_json(json, where);
  JsonObject object(value, where);
  Engine engine;
  engine.name = object.name("name");
  engine.title = object.text("title");
  engine.source = object.text("source");
  for (const NumberKey& number : kNumbers) {
    if (object.has(number.key)) engine.*(number.member) = object.number(number.key, 0, number.upper);
  }
  check_alignment(object, engine);
  for (const FlagKey& flag : kFlags) {
    if (object.has(flag.key)) engine.*(flag.member) = object.flag(flag.key);
  }
  read_choice(object, "reduction", kReductionNames, engine.reduction);
  read_choice(object, "logits", kLogitsNames, engine.logits);
  read_choice(object, "working_set", kWorkingSetNames, engine.working_set);
  read_lists(object, engine);
  if (object.has("sources")) engine.sources = object.text_map("sources");
  for (const auto& [key, source] : engine.sources) {
    if (!object.has(key)) object.fail("sources." + key, "is the source of a key that is not there");
  }
  object.finish();
  return engine;
}

}  // namespace layline::spec
