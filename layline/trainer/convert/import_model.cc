#include "layline/trainer/convert/import_model.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <vector>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/spec/registry.h"
#include "layline/trainer/checkpoint/model_weights.h"
#include "layline/trainer/convert/cast.h"
#include "layline/trainer/convert/run_of.h"
#include "layline/trainer/formats/safetensors_files.h"

namespace layline::trainer::convert {
namespace {

using checkpoint::Box;
using checkpoint::Kind;
using checkpoint::Manifest;
using formats::TensorType;

class FolderSource final : public WeightSource {
 public:
  FolderSource(const formats::SafetensorsFiles& files, TensorType type) : files_(files), type_(type) {}

  void read(Kind /*of which there is one*/, const std::string& weight, const Box& box,
            std::span<std::byte> out) const override {
    const formats::PlacedTensor& tensor = files_.tensors.at(weight);
    const std::span<const std::byte> all = tensor.file->bytes().subspan(static_cast<size_t>(tensor.entry.begin_bytes),
                                                                        static_cast<size_t>(tensor.entry.size_bytes));
    const int64_t columns = checkpoint::whole(tensor.entry.shape).num_columns;
    const auto from_bytes = static_cast<size_t>(formats::num_bytes(tensor.entry.type));
    const auto row_out = static_cast<size_t>(box.num_columns * formats::num_bytes(type_));
    for (int64_t row = 0; row < box.num_rows; ++row) {
      const auto first = static_cast<size_t>((box.first_row + row) * columns + box.first_column);
      cast(all.subspan(first * from_bytes, static_cast<size_t>(box.num_columns) * from_bytes), tensor.entry.type,
           out.subspan(static_cast<size_t>(row) * row_out, row_out), type_);
    }
  }

 private:
  const formats::SafetensorsFiles& files_;
  TensorType type_;
};

class CheckpointSource final : public WeightSource {
 public:
  CheckpointSource(const checkpoint::CheckpointReader& reader, TensorType type) : reader_(reader), type_(type) {}

  void read(Kind kind, const std::string& weight, const Box& box, std::span<std::byte> out) const override {
    const TensorType from = reader_.manifest().type;
    std::vector<std::byte> saved(static_cast<size_t>(box.size() * formats::num_bytes(from)));
    reader_.read(kind, weight, box, saved);
    cast(saved, from, out, type_);
  }

 private:
  const checkpoint::CheckpointReader& reader_;
  TensorType type_;
};

// The trainer's models: the rest can be planned with only.
void check_is_llama(const spec::Model& model, const std::string& where) {
  const bool is_llama = model.mlp == spec::Mlp::kSwiglu && model.norm == spec::Norm::kRmsNorm &&
                        model.position == spec::Position::kRope && !model.qkv_bias && !model.linear_bias &&
                        model.rope.scaling != spec::RopeScaling::kOther;
  if (is_llama) return;
  throw base::InputError(
      where,
      "is a model that the trainer does not have: want RMSNorm, SwiGLU, rotary embedding (plain, linear "
      "or llama3) and no biases");
}

void check_weights(const formats::SafetensorsFiles& files, const spec::Model& model) {
  std::map<std::string, formats::TensorShape> found;
  for (const auto& [name, tensor] : files.tensors) {
    found[name] = {.type = tensor.entry.type, .shape = tensor.entry.shape};
  }
  checkpoint::check_fits(found, files.path, model);
  for (const auto& entry : checkpoint::model_weights(model)) {
    const TensorType type = files.tensors.at(entry.first).entry.type;
    if (is_float(type)) continue;
    throw base::InputError(files.path, fmt::format("weight \"{}\" has numbers of type {}; want F64, F32, BF16 or F16",
                                                   entry.first, formats::name_of(type)));
  }
}

Manifest manifest_of(const spec::Model& model, TensorType type) {
  Manifest manifest;
  manifest.type = type;
  manifest.has_moments = false;
  manifest.layout = "import";
  for (const auto& [name, weight] : checkpoint::model_weights(model))
    manifest.parameters.push_back({name, weight.shape});
  return manifest;
}

}  // namespace

std::string import_model(const std::string& folder, const std::string& directory, TensorType type,
                         const WriteOptions& options) {
  const std::string config = (std::filesystem::path(folder) / "config.json").string();
  const std::string text = base::read_file(config);
  const spec::Model model = spec::parse_model(text, config);
  check_is_llama(model, config);
  const formats::SafetensorsFiles files = formats::open_safetensors(folder);
  check_weights(files, model);
  Manifest manifest = manifest_of(model, type);
  manifest.run = imported_run(model, extras_of(text), folder);
  return write_checkpoint(directory, std::move(manifest), model, FolderSource(files, type), options);
}

std::string convert_checkpoint(const checkpoint::CheckpointReader& reader, const std::string& directory,
                               const ConvertOptions& convert, const WriteOptions& options) {
  Manifest manifest = reader.manifest();
  const spec::Model model = run_of(manifest, reader.folder()).model;
  manifest.files.clear();
  manifest.type = convert.type;
  manifest.has_moments = manifest.has_moments && convert.keeps_moments;
  return write_checkpoint(directory, std::move(manifest), model, CheckpointSource(reader, convert.type), options);
}

}  // namespace layline::trainer::convert
