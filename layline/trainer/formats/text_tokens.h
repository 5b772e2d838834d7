// A text file as tokens: each byte is one, its id the byte's value.
#pragma once

#include <string>

#include "layline/trainer/formats/mapped_file.h"
#include "layline/trainer/formats/token_source.h"

namespace layline::trainer::formats {

class TextTokens final : public TokenSource {
 public:
  // Throws base::InputError when the file is missing, no regular file, or unreadable.
  explicit TextTokens(const std::string& path) : file_(path) {}

  const std::string& path() const override { return file_.path(); }
  int64_t num_tokens() const override { return static_cast<int64_t>(file_.bytes().size()); }
  void read(int64_t offset, std::span<int64_t> out) const override;
  int64_t largest_possible_token() const override { return 255; }

 private:
  MappedFile file_;
};

}  // namespace layline::trainer::formats
