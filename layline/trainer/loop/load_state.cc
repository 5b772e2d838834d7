#include "layline/trainer/loop/load_state.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "layline/base/error.h"
#include "layline/trainer/loop/load_weights.h"
#include "layline/trainer/loop/state_slices.h"
#include "layline/trainer/model/mutation.h"

namespace layline::trainer::loop {

namespace {

using checkpoint::Kind;
using checkpoint::SavedParameter;
using nlohmann::json;

// Of RUN.json: those that change losses. Others say where, how fast and how a run is carried out.
constexpr std::array kSettings = {"/seed",
                                  "/steps",
                                  "/global_batch",
                                  "/precision",
                                  "/data/train",
                                  "/data/tokenizer",
                                  "/data/order",
                                  "/data/mask_document_boundaries",
                                  "/optimizer/learning_rate",
                                  "/optimizer/warmup_steps",
                                  "/optimizer/decay",
                                  "/optimizer/min_learning_rate",
                                  "/optimizer/betas",
                                  "/optimizer/epsilon",
                                  "/optimizer/weight_decay",
                                  "/optimizer/clip"};

json value_at(const json& run, const json::json_pointer& place) { return run.contains(place) ? run.at(place) : json(); }

void check_parameters(const checkpoint::CheckpointReader& reader, const spec::Model& model,
                      const std::vector<SavedParameter>& parameters) {
  const auto refuse = [&](const std::string& what) {
    throw base::InputError(reader.folder(), fmt::format("{}; it is not of model {}", what, model.name));
  };
  const std::vector<SavedParameter>& found = reader.manifest().parameters;
  for (size_t i = 0; i < std::max(found.size(), parameters.size()); ++i) {
    if (i >= parameters.size()) refuse(fmt::format("holds a weight {}", found[i].name));
    if (i >= found.size() || found[i].name > parameters[i].name) {
      refuse(fmt::format("has no weight {}", parameters[i].name));
    }
    if (found[i].name != parameters[i].name) refuse(fmt::format("holds a weight {}", found[i].name));
    if (found[i].shape == parameters[i].shape) continue;
    refuse(fmt::format("weight {} is {} and not {}", found[i].name, fmt::join(found[i].shape, " x "),
                       fmt::join(parameters[i].shape, " x ")));
  }
}

}  // namespace

std::vector<SavedParameter> saved_parameters(const spec::Model& model) {
  std::vector<SavedParameter> parameters;
  for (const auto& [name, shape] : weights_of(model)) parameters.push_back({name, shape});
  return parameters;
}

void check_resumable(const checkpoint::CheckpointReader& reader, const config::RunConfig& config,
                     const std::vector<SavedParameter>& parameters, at::ScalarType dtype) {
  check_parameters(reader, config.model, parameters);
  const checkpoint::Manifest& manifest = reader.manifest();
  const bool is_wide = manifest.type == formats::TensorType::kF64;
  if (is_wide != (dtype == at::kDouble)) {
    throw base::InputError(
        config::place_of(config, "precision"),
        fmt::format("{} was written in {}: `layline checkpoint convert` makes one for another precision",
                    reader.folder(), is_wide ? "fp64" : "fp32, as bf16 and fp32 runs do"));
  }
  const json run = json::parse(manifest.run);
  const int64_t length = run.value("sequence_length", config.sequence_length);
  if (manifest.next_sample == 0 || length == config.sequence_length) return;
  throw base::InputError(
      config::place_of(config, "sequence_length"),
      fmt::format("found {}, {} was written with {}: its place in the data would mean other tokens. Start a new run "
                  "from its weights: `layline checkpoint export`, then \"load\"",
                  config.sequence_length, reader.folder(), length));
}

std::vector<std::string> differences(const checkpoint::Manifest& manifest, const config::RunConfig& config) {
  std::vector<std::string> lines;
  const json before = json::parse(manifest.run), now = json::parse(config::to_json(config));
  for (const char* setting : kSettings) {
    const json::json_pointer place(setting);
    const json old_value = value_at(before, place), new_value = value_at(now, place);
    if (old_value.is_null() || old_value == new_value) continue;
    std::string name = std::string(setting).substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    lines.push_back(fmt::format("changed since: {} was {}, is {}", name, old_value.dump(), new_value.dump()));
  }
  return lines;
}

void load_state(const checkpoint::CheckpointReader& reader, RankTrainer& trainer, int64_t steps_done) {
  std::vector<checkpoint::CheckpointReader::Request> requests;
  trainer.for_each_state([&](const optimizer::OptimizerState& state) {
    const std::array<const at::Tensor*, checkpoint::kNumKinds> tensors = {&state.master, &state.exp_avg,
                                                                          &state.exp_avg_sq};
    const auto bytes = static_cast<int64_t>(state.master.element_size());
    for (const StateSlice& slice : slices_of(*state.parameter, state.offset, state.master.numel(), 1)) {
      for (size_t kind = 0; kind < tensors.size(); ++kind) {
        if (kind > 0 && model::mutated(model::Mutation::kForgetMoments)) continue;
        auto* first = static_cast<std::byte*>(tensors[kind]->mutable_data_ptr()) + slice.offset * bytes;
        requests.push_back({static_cast<Kind>(kind),
                            state.parameter->name,
                            slice.box,
                            {first, static_cast<size_t>(slice.box.size() * bytes)}});
      }
    }
  });
  reader.read(requests);
  trainer.state_changed(model::mutated(model::Mutation::kForgetSteps) ? 0 : steps_done);
}

}  // namespace layline::trainer::loop
