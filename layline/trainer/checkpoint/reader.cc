#include "layline/trainer/checkpoint/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <tbb/parallel_for.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <unordered_map>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/base/file_descriptor.h"
#include "layline/trainer/checkpoint/hashes.h"
#include "layline/trainer/checkpoint/shard_file.h"
#include "layline/trainer/formats/mapped_file.h"

namespace layline::trainer::checkpoint {

using base::InputError;

namespace {

constexpr int64_t kMaxManifestBytes = int64_t{8} << 30;
// Of one read: whole blocks, few enough to be in the core's own cache when they are hashed and copied.
constexpr int64_t kReadBytes = 64 * kBlockBytes;
constexpr int64_t kLeastDirectBytes = 256 << 10;
// What reads past the page cache begin and end at multiples of.
constexpr int64_t kAlignment = 4096;
// Of a thread's share of a request.
constexpr int64_t kPieceBytes = 8 << 20;

std::string reason() { return std::generic_category().message(errno); }

class AlignedMemory {
 public:
  explicit AlignedMemory(int64_t size)
      : size_(static_cast<size_t>(size)), memory_(static_cast<std::byte*>(std::aligned_alloc(kAlignment, size_))) {
    if (!memory_) throw std::bad_alloc();
  }
  std::span<std::byte> bytes() const { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }  // NOLINT: of aligned_alloc
  };

  size_t size_;
  std::unique_ptr<std::byte, Free> memory_;
};

std::string manifest_path(const std::string& folder) { return folder + "/" + std::string(kManifestName); }

}  // namespace

// A file of the checkpoint, opened when it is first read. Its header and its hashes are checked then.
class CheckpointReader::File {
 public:
  File(std::string path, const Manifest& manifest, const SavedFile& saved, std::atomic<int64_t>& bytes_read)
      : path_(std::move(path)), manifest_(manifest), saved_(saved), bytes_read_(bytes_read) {
    struct stat info = {};
    if (::stat(path_.c_str(), &info) != 0) throw InputError(path_, fmt::format("cannot read: {}", reason()));
    if (info.st_size != saved.size_bytes) {
      throw InputError(path_,
                       fmt::format("is damaged: it has {} bytes, {} were written", info.st_size, saved.size_bytes));
    }
    place_tensors();
  }

  // The bytes [first, last) of a tensor of size_bytes that begins at `begin` in the file and at `block` among the
  // hashes, in pieces of whole blocks: visit(offset in the tensor, bytes), which may reach beyond what was asked for.
  template <typename Visit>
  void read(int64_t begin, int64_t size_bytes, int64_t block, int64_t first, int64_t last, const Visit& visit) {
    open();
    const int64_t end = std::min(size_bytes, num_blocks(last) * kBlockBytes);
    int64_t offset = first / kBlockBytes * kBlockBytes;
    const AlignedMemory memory(kReadBytes + 2 * kAlignment);
    for (; offset < end; offset += kReadBytes) {
      const std::span<const std::byte> bytes = read_data(begin + offset, std::min(kReadBytes, end - offset), memory);
      check(bytes, block + offset / kBlockBytes, begin + offset);
      visit(offset, bytes);
    }
  }

  // The first hash of the tensor that begins there: hashes are in the order of the file.
  int64_t first_block(int64_t begin_bytes) {
    open();
    return tensors_.at(begin_bytes).first_block;
  }

  // All of it.
  void verify() {
    open();
    for (const auto& [begin, tensor] : tensors_) {
      read(begin, tensor.size_bytes, tensor.first_block, 0, tensor.size_bytes,
           [](int64_t, std::span<const std::byte>) {});
    }
    check_header();
  }

 private:
  struct Tensor {
    int64_t size_bytes = 0;
    int64_t first_block = 0;  // among the hashes, which are in the order of the file
  };

  // visit(slice, kind) for each tensor but the hashes.
  template <typename Visit>
  void for_each_tensor(const Visit& visit) const {
    for (const SavedSlice& slice : saved_.slices) {
      for (int64_t kind = 0; kind < manifest_.num_kinds(); ++kind) visit(slice, static_cast<size_t>(kind));
    }
  }

  void place_tensors() {
    for_each_tensor([this](const SavedSlice& slice, size_t kind) {
      tensors_[slice.begin_bytes[kind]].size_bytes = slice.box.size() * formats::num_bytes(manifest_.type);
    });
    int64_t block = 0;
    for (auto& [begin, tensor] : tensors_) {
      tensor.first_block = block;
      block += num_blocks(tensor.size_bytes);
    }
    if (block == saved_.num_hashes) return;
    throw InputError(path_, fmt::format("has {} hashes for {} blocks", saved_.num_hashes, block));
  }

  void open() {
    std::call_once(opened_, [this] {
      file_.emplace(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
      if (file_->get() < 0) throw InputError(path_, fmt::format("cannot read: {}", reason()));
      direct_.emplace(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
      std::vector<std::byte> header(static_cast<size_t>(saved_.header_bytes));
      read_fully(0, header);
      if (hash(header) != saved_.header_hash) throw InputError(path_, "is damaged: its header is not what was written");
      hashes_.resize(static_cast<size_t>(saved_.num_hashes));
      const auto bytes = std::as_writable_bytes(std::span(hashes_));
      read_fully(saved_.hashes_begin_bytes, bytes);
      if (hash(bytes) != saved_.hashes_hash) throw InputError(path_, "is damaged: its hashes are not what was written");
    });
  }

  // What is large, past the page cache where the file system has that: it is read once, and need not push out what is
  // used.
  std::span<const std::byte> read_data(int64_t offset, int64_t size, const AlignedMemory& memory) const {
    const int64_t first = offset / kAlignment * kAlignment;
    const int64_t length = (offset + size - first + kAlignment - 1) / kAlignment * kAlignment;
    const std::span<std::byte> wanted =
        memory.bytes().subspan(static_cast<size_t>(offset - first), static_cast<size_t>(size));
    const bool is_direct = direct_->get() >= 0 && size >= kLeastDirectBytes;
    const ssize_t count =
        !is_direct ? -1 : ::pread(direct_->get(), memory.bytes().data(), static_cast<size_t>(length), first);
    if (count >= offset + size - first) {
      bytes_read_ += count;
    } else {
      read_fully(offset, wanted);
    }
    return wanted;
  }

  void read_fully(int64_t offset, std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::pread(file_->get(), bytes.data(), bytes.size(), offset);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw InputError(path_, fmt::format("cannot read: {}", reason()));
      if (count == 0) throw InputError(path_, fmt::format("is damaged: it ends at byte {}", offset));
      bytes = bytes.subspan(static_cast<size_t>(count));
      offset += count;
      bytes_read_ += count;
    }
  }

  void check(std::span<const std::byte> bytes, int64_t block, int64_t offset) const {
    for (; !bytes.empty(); ++block) {
      const auto part = bytes.first(std::min<size_t>(bytes.size(), kBlockBytes));
      if (hash(part) != hashes_[static_cast<size_t>(block)]) {
        throw InputError(path_, fmt::format("is damaged: bytes {} to {} are not what was written", offset,
                                            offset + static_cast<int64_t>(part.size())));
      }
      bytes = bytes.subspan(part.size());
      offset += static_cast<int64_t>(part.size());
    }
  }

  // That other programs find what the manifest says.
  void check_header() const {
    const formats::MappedFile mapped(path_);
    const formats::SafetensorsHeader header = formats::parse_safetensors_header(mapped.bytes(), path_);
    for_each_tensor([&](const SavedSlice& slice, size_t kind) {
      const std::string& parameter = manifest_.parameters[static_cast<size_t>(slice.parameter)].name;
      const std::string name = tensor_name(static_cast<Kind>(kind), parameter, slice.box);
      const int64_t begin = slice.begin_bytes[kind];
      const auto found = header.tensors.find(name);
      if (found == header.tensors.end() || found->second.begin_bytes != begin ||
          found->second.size_bytes != tensors_.at(begin).size_bytes) {
        throw InputError(path_, fmt::format("tensor {} is not where the manifest has it", name));
      }
    });
    if (header.tensors.size() != tensors_.size() + 1) {
      throw InputError(path_,
                       fmt::format("has {} tensors, the manifest {}", header.tensors.size(), tensors_.size() + 1));
    }
  }

  std::string path_;
  const Manifest& manifest_;
  const SavedFile& saved_;
  std::atomic<int64_t>& bytes_read_;
  std::once_flag opened_;
  std::optional<base::FileDescriptor> file_, direct_;  // direct_: below 0 where the file system has it not
  std::vector<uint64_t> hashes_;
  std::map<int64_t, Tensor> tensors_;  // by first byte
};

// Where the rectangles of each weight are.
struct CheckpointReader::Index {
  std::unordered_map<std::string, std::vector<Place>> places;
};

CheckpointReader::CheckpointReader(std::string folder)
    : manifest_(parse_manifest(base::read_file(manifest_path(folder), kMaxManifestBytes), manifest_path(folder))),
      folder_(std::move(folder)) {
  auto index = std::make_unique<Index>();
  for (const SavedFile& saved : manifest_.files) {
    for (const SavedSlice& slice : saved.slices) {
      index->places[manifest_.parameters[static_cast<size_t>(slice.parameter)].name].push_back({files_.size(), &slice});
    }
    files_.push_back(std::make_unique<File>(folder_ + "/" + saved.name, manifest_, saved, bytes_read_));
  }
  index_ = std::move(index);
}

CheckpointReader::~CheckpointReader() = default;

bool CheckpointReader::has(const std::string& parameter) const { return index_->places.count(parameter) != 0; }

namespace {

// Copies what of `part`, bytes of a slice from `offset` on, is within `box`, to the box's rows at `out`.
class RowCopier {
 public:
  RowCopier(const Box& slice, const Box& both, const Box& box, int64_t element_bytes, std::span<std::byte> out)
      : slice_(slice), both_(both), box_(box), element_bytes_(element_bytes), out_(out) {
    const int64_t width = both.num_columns;
    if (slice.num_columns != width || box.num_columns != width) return;
    // Rows lie one behind the other in both: one long row.
    slice_ = {0, 0, 1, slice.size()};
    both_ = {0, (both.first_row - slice.first_row) * width, 1, both.size()};
    box_ = {0, both_.first_column - (both.first_row - box.first_row) * width, 1, box.size()};
  }

  // Of the slice: the first byte that is wanted, and the end of the last.
  int64_t first() const { return in_slice(both_.first_row, both_.first_column); }
  int64_t last() const { return in_slice(both_.end_row() - 1, both_.end_column()); }

  void operator()(int64_t offset, std::span<const std::byte> part) const {
    const int64_t end = offset + static_cast<int64_t>(part.size());
    const int64_t stride = slice_.num_columns * element_bytes_;
    const int64_t first_row = std::max(both_.first_row, slice_.first_row + offset / stride);
    for (int64_t row = first_row; row < both_.end_row(); ++row) {
      const int64_t begin = in_slice(row, both_.first_column);
      if (begin >= end) return;
      const int64_t from = std::max(begin, offset), to = std::min(in_slice(row, both_.end_column()), end);
      if (from >= to) continue;
      std::memcpy(out_.data() + in_box(row) + (from - begin), part.data() + (from - offset),
                  static_cast<size_t>(to - from));
    }
  }

 private:
  int64_t in_slice(int64_t row, int64_t column) const {
    return ((row - slice_.first_row) * slice_.num_columns + column - slice_.first_column) * element_bytes_;
  }
  int64_t in_box(int64_t row) const {
    return ((row - box_.first_row) * box_.num_columns + both_.first_column - box_.first_column) * element_bytes_;
  }

  Box slice_, both_, box_;
  int64_t element_bytes_;
  std::span<std::byte> out_;
};

}  // namespace

void CheckpointReader::read(Kind kind, const std::string& parameter, const Box& box, std::span<std::byte> out) const {
  const int64_t element_bytes = formats::num_bytes(manifest_.type);
  assert(static_cast<int64_t>(out.size()) == box.size() * element_bytes);
  if (kind != Kind::kWeight && !manifest_.has_moments) {
    std::fill(out.begin(), out.end(), std::byte{0});
    return;
  }
  for (const Place& place : index_->places.at(parameter)) {
    const SavedSlice& slice = *place.slice;
    const Box both = intersection(slice.box, box);
    if (both.size() == 0) continue;
    File& file = *files_[place.file];
    const int64_t begin = slice.begin_bytes[static_cast<size_t>(kind)];
    const RowCopier copy(slice.box, both, box, element_bytes, out);
    file.read(begin, slice.box.size() * element_bytes, file.first_block(begin), copy.first(), copy.last(), copy);
  }
}

void CheckpointReader::read(const std::vector<Request>& requests) const {
  const int64_t element_bytes = formats::num_bytes(manifest_.type);
  std::vector<Request> pieces;
  for (const Request& request : requests) {
    const int64_t row_bytes = request.box.num_columns * element_bytes;
    const int64_t num_rows = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(row_bytes, 1));
    for (int64_t row = 0; row < request.box.num_rows; row += num_rows) {
      Request& piece = pieces.emplace_back(request);
      piece.box.first_row += row;
      piece.box.num_rows = std::min(num_rows, request.box.num_rows - row);
      piece.out = request.out.subspan(static_cast<size_t>(row * row_bytes),
                                      static_cast<size_t>(piece.box.num_rows * row_bytes));
    }
  }
  tbb::parallel_for(size_t{0}, pieces.size(), [&](size_t i) {
    const Request& piece = pieces[i];
    read(piece.kind, piece.parameter, piece.box, piece.out);
  });
}

void CheckpointReader::verify_file(size_t index) const { files_[index]->verify(); }

}  // namespace layline::trainer::checkpoint
