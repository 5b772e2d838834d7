// Tokens of a Megatron-LM data set: a .bin file with its .idx. The stream is the .bin from end to end, documents one
// behind the other.
#pragma once

#include <string>

#include "layline/trainer/formats/mapped_file.h"
#include "layline/trainer/formats/megatron_index.h"
#include "layline/trainer/formats/token_source.h"

namespace layline::trainer::formats {

class MegatronTokens final : public TokenSource {
 public:
  // Opens `prefix`.bin and `prefix`.idx. Throws base::InputError when one is missing, damaged, or not the other's.
  explicit MegatronTokens(const std::string& prefix);

  const MegatronIndex& index() const { return index_; }

  const std::string& path() const override { return bin_.path(); }
  int64_t num_tokens() const override { return index_.num_tokens; }
  void read(int64_t offset, std::span<int64_t> out) const override;
  int64_t largest_possible_token() const override { return largest_value(index_.type); }

 private:
  MappedFile bin_;
  MegatronIndex index_;
};

}  // namespace layline::trainer::formats
