#include "layline/trainer/convert/export_model.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/base/file_descriptor.h"
#include "layline/trainer/convert/cast.h"
#include "layline/trainer/convert/run_of.h"

namespace layline::trainer::convert {
namespace {

namespace fs = std::filesystem;
using checkpoint::Box;
using checkpoint::Kind;
using checkpoint::SavedParameter;
using formats::TensorType;

constexpr int64_t kPieceBytes = int64_t{32} << 20;
constexpr int64_t kMebibyte = 1 << 20;

std::string torch_name(TensorType type) {
  switch (type) {
    case TensorType::kF64:
      return "float64";
    case TensorType::kF32:
      return "float32";
    case TensorType::kF16:
      return "float16";
    default:
      return "bfloat16";
  }
}

std::string reason() { return std::generic_category().message(errno); }

// A folder beside the one that is wanted, until it takes its name.
class NewFolder {
 public:
  explicit NewFolder(std::string path) : path_(std::move(path)), temporary_(path_ + ".XXXXXX") {
    while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
    temporary_ = path_ + ".XXXXXX";
    if (fs::exists(fs::symlink_status(path_))) throw base::InputError(path_, "is there already: choose another folder");
    if (::mkdtemp(temporary_.data()) == nullptr) {
      throw base::InputError(path_, fmt::format("cannot be made: {}", reason()));
    }
    fs::permissions(temporary_, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                                    fs::perms::others_read | fs::perms::others_exec);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder() {
    std::error_code ignored;
    if (!is_kept_) fs::remove_all(temporary_, ignored);
  }
  std::string file(const std::string& name) const { return temporary_ + "/" + name; }
  void keep() {
    base::sync_folder_of(file("config.json"));
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
      throw base::RunError(path_, fmt::format("cannot be made: {}", reason()));
    }
    is_kept_ = true;
    base::sync_folder_of(path_);
  }

 private:
  std::string path_, temporary_;
  bool is_kept_ = false;
};

class Exporter {
 public:
  Exporter(const checkpoint::CheckpointReader& reader, const ExportOptions& options)
      : reader_(reader),
        options_(options),
        element_bytes_(formats::num_bytes(options.type)),
        progress_(options.sink, "exporting, MiB", total_bytes() / kMebibyte) {
    assert(is_float(options.type));
  }

  Exported run(const NewFolder& folder) {
    const std::vector<std::vector<SavedParameter>> files = files_of_weights();
    Exported exported{static_cast<int64_t>(files.size()), 0};
    nlohmann::ordered_json places;
    for (size_t i = 0; i < files.size(); ++i) {
      const std::string name = files.size() == 1 ? "model.safetensors"
                                                 : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, files.size());
      exported.size_bytes += write(folder.file(name), files[i]);
      for (const SavedParameter& weight : files[i]) places[weight.name] = name;
    }
    if (files.size() > 1) {
      const nlohmann::ordered_json index = {{"metadata", {{"total_size", total_bytes()}}}, {"weight_map", places}};
      base::write_file_atomically(folder.file("model.safetensors.index.json"), index.dump(2) + "\n");
    }
    const RunOf run = run_of(reader_.manifest(), reader_.folder());
    base::write_file_atomically(folder.file("config.json"),
                                llama_config(run.model, run.extras, torch_name(options_.type)));
    return exported;
  }

 private:
  int64_t bytes_of(const SavedParameter& weight) const {
    return checkpoint::whole(weight.shape).size() * element_bytes_;
  }
  int64_t total_bytes() const {
    int64_t sum = 0;
    for (const SavedParameter& weight : reader_.manifest().parameters) sum += bytes_of(weight);
    return sum;
  }

  std::vector<std::vector<SavedParameter>> files_of_weights() const {
    std::vector<std::vector<SavedParameter>> files(1);
    int64_t size = 0;
    for (const SavedParameter& weight : reader_.manifest().parameters) {
      if (size > 0 && size + bytes_of(weight) > options_.file_bytes) {
        files.emplace_back();
        size = 0;
      }
      files.back().push_back(weight);
      size += bytes_of(weight);
    }
    return files;
  }

  int64_t write(const std::string& path, const std::vector<SavedParameter>& weights) {
    std::map<std::string, formats::TensorShape> shapes;
    for (const SavedParameter& weight : weights) shapes[weight.name] = {.type = options_.type, .shape = weight.shape};
    const formats::WrittenHeader header = formats::write_safetensors_header(shapes, {{"format", "pt"}});
    base::FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.get() < 0) throw base::RunError(path, fmt::format("cannot write: {}", reason()));
    base::write_fully(file.get(), header.bytes, path);
    for (const std::string& name : header.order) write_weight(file, path, name, shapes.at(name).shape);
    if (::fsync(file.get()) != 0 || file.close() != 0) {
      throw base::RunError(path, fmt::format("cannot write: {}", reason()));
    }
    return static_cast<int64_t>(fs::file_size(path));
  }

  void write_weight(const base::FileDescriptor& file, const std::string& path, const std::string& name,
                    const std::vector<int64_t>& shape) {
    const TensorType saved_type = reader_.manifest().type;
    const Box all = checkpoint::whole(shape);
    const int64_t most_rows = std::max<int64_t>(1, kPieceBytes / (all.num_columns * formats::num_bytes(saved_type)));
    for (int64_t row = 0; row < all.num_rows; row += most_rows) {
      if (options_.is_cancelled && options_.is_cancelled()) throw base::RunError(path, "exporting was given up");
      const Box box{row, 0, std::min(most_rows, all.num_rows - row), all.num_columns};
      saved_.resize(static_cast<size_t>(box.size() * formats::num_bytes(saved_type)));
      written_.resize(static_cast<size_t>(box.size() * element_bytes_));
      reader_.read({{Kind::kWeight, name, box, saved_}});
      cast(saved_, saved_type, written_, options_.type);
      base::write_fully(file.get(), {reinterpret_cast<const char*>(written_.data()), written_.size()}, path);
      num_written_ += static_cast<int64_t>(written_.size());
      progress_.advance(num_written_ / kMebibyte - num_shown_);
      num_shown_ = num_written_ / kMebibyte;
    }
  }

  const checkpoint::CheckpointReader& reader_;
  const ExportOptions& options_;
  int64_t element_bytes_;
  base::Progress progress_;
  std::vector<std::byte> saved_, written_;
  int64_t num_written_ = 0, num_shown_ = 0;
};

}  // namespace

Exported export_model(const checkpoint::CheckpointReader& reader, const std::string& folder,
                      const ExportOptions& options) {
  NewFolder made(folder);
  const Exported exported = Exporter(reader, options).run(made);
  made.keep();
  return exported;
}

}  // namespace layline::trainer::convert
