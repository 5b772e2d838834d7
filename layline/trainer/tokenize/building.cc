#include "layline/trainer/tokenize/building.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "layline/base/error.h"
#include "layline/base/file.h"

namespace layline::trainer::tokenize {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::array kNumbers = {std::pair{"num_pieces", &BuildState::num_pieces},
                                 std::pair{"bin_bytes", &BuildState::bin_bytes},
                                 std::pair{"num_sequences", &BuildState::num_sequences},
                                 std::pair{"num_documents", &BuildState::num_documents},
                                 std::pair{"num_empty_documents", &BuildState::num_empty_documents},
                                 std::pair{"num_tokens", &BuildState::num_tokens}};

std::string reason() { return std::generic_category().message(errno); }

[[noreturn]] void fail(const std::string& path) {
  throw base::RunError(path, fmt::format("cannot write: {}", reason()));
}

int open_for_writing(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) throw base::InputError(path, fmt::format("cannot be written: {}", reason()));
  return file;
}

void rename_to(const std::string& from, const std::string& to) {
  if (fs::exists(from) && ::rename(from.c_str(), to.c_str()) != 0) fail(to);
}

}  // namespace

Building::Building(const std::string& prefix, const std::string& settings)
    : prefix_(prefix), settings_(settings), sequences_(open_for_writing(building("sequences"))) {
  lock();
  read_state(settings);
  if (state_.is_complete) return;
  for (const char* ending : {".bin", ".idx"}) {
    if (!fs::exists(prefix_ + ending)) continue;
    if (!fs::exists(building("json"))) fs::remove(building("sequences"));
    throw base::InputError(prefix_ + ending, "is there already: choose another --output, or remove it");
  }
  bin_.emplace(open_for_writing(building("bin")));
  cut_files();
}

void Building::lock() {
  if (::flock(sequences_.get(), LOCK_EX | LOCK_NB) == 0) return;
  throw base::InputError(prefix_, "another process builds this data set");
}

void Building::read_state(const std::string& settings) {
  const std::string path = building("json");
  if (!fs::exists(path)) return;
  const ordered_json json = ordered_json::parse(base::read_file(path), nullptr, false);
  const auto refuse = [&](const char* what) {
    throw base::InputError(path, fmt::format("{}: remove {}.building.* to begin anew", what, prefix_));
  };
  if (!json.is_object() || !json.contains("settings")) refuse("is no state of a build");
  if (json.at("settings") != settings) refuse("is of a build with other input, or with other options");
  for (const auto& [name, member] : kNumbers) {
    if (!json.contains(name) || !json.at(name).is_number_integer()) refuse("is no state of a build");
    state_.*member = json.at(name).get<int64_t>();
  }
  state_.is_complete = json.value("is_complete", false);
}

// What was written after the last note.
void Building::cut_files() {
  const auto cut = [](const base::FileDescriptor& file, int64_t bytes, const std::string& path) {
    if (::lseek(file.get(), 0, SEEK_END) < bytes) throw base::InputError(path, "is shorter than its state says");
    if (::ftruncate(file.get(), bytes) != 0 || ::lseek(file.get(), bytes, SEEK_SET) != bytes) fail(path);
  };
  cut(*bin_, state_.bin_bytes, building("bin"));
  cut(sequences_, state_.num_sequences * int64_t{sizeof(int64_t)}, building("sequences"));
}

void Building::append(const EncodedPiece& piece) {
  std::string packed;
  packed.reserve(piece.sequences.size() * sizeof(int64_t));
  for (const Sequence& sequence : piece.sequences) {
    const int64_t value = sequence.packed();
    packed.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  base::write_fully(bin_->get(), piece.bytes, building("bin"));
  base::write_fully(sequences_.get(), packed, building("sequences"));
  ++state_.num_pieces;
  state_.bin_bytes += static_cast<int64_t>(piece.bytes.size());
  state_.num_sequences += static_cast<int64_t>(piece.sequences.size());
  state_.num_documents += piece.num_documents;
  state_.num_empty_documents += piece.num_empty_documents;
  state_.num_tokens += piece.num_tokens;
}

void Building::note() {
  if (::fdatasync(bin_->get()) != 0) fail(building("bin"));
  if (::fdatasync(sequences_.get()) != 0) fail(building("sequences"));
  write_state();
}

void Building::write_state() const {
  ordered_json json = {{"settings", settings_}, {"is_complete", state_.is_complete}};
  for (const auto& [name, member] : kNumbers) json[name] = state_.*member;
  base::write_file_atomically(building("json"), json.dump(2) + "\n");
}

void Building::finish(formats::TokenType type) {
  if (!state_.is_complete) {
    note();
    write_megatron_index(building("idx"), type, building("sequences"), state_.num_documents);
    state_.is_complete = true;
    write_state();
  }
  rename_all();
}

// The index last: a data set that has one is whole.
void Building::rename_all() {
  rename_to(building("bin"), prefix_ + ".bin");
  rename_to(building("idx"), prefix_ + ".idx");
  base::sync_folder_of(prefix_ + ".idx");
  for (const char* ending : {"json", "sequences"}) {
    std::error_code ignored;
    fs::remove(building(ending), ignored);
  }
}

}  // namespace layline::trainer::tokenize
