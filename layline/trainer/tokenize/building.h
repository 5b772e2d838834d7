// The files of a data set that is being built, and how far they are right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "layline/base/file_descriptor.h"
#include "layline/trainer/tokenize/encode_piece.h"

namespace layline::trainer::tokenize {

struct BuildState {
  int64_t num_pieces = 0;  // that are done
  int64_t bin_bytes = 0, num_sequences = 0;
  int64_t num_documents = 0, num_empty_documents = 0, num_tokens = 0;
  bool is_complete = false;  // all but the renaming
};

class Building {
 public:
  // Takes the prefix for this process, and goes on with what an earlier build with the same settings left there.
  // Throws base::InputError: the output is there, another process builds it, or it is being built with other settings.
  Building(const std::string& prefix, const std::string& settings);

  const BuildState& state() const { return state_; }
  void append(const EncodedPiece& piece);
  // What was appended so far is not lost whatever happens.
  void note();
  // Writes the index, and gives both files their names.
  void finish(formats::TokenType type);

 private:
  std::string building(const char* ending) const { return prefix_ + ".building." + ending; }
  void lock();
  void read_state(const std::string& settings);
  void cut_files();
  void write_state() const;
  void rename_all();

  std::string prefix_, settings_;
  base::FileDescriptor sequences_;
  std::optional<base::FileDescriptor> bin_;  // while it is being built
  BuildState state_;
};

}  // namespace layline::trainer::tokenize
