// Files for the tests, written byte by byte from the formats' descriptions: nothing here calls the code under test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "layline/base/error.h"

namespace layline::trainer::formats::test {

// A folder that goes with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "layline-formats-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  // The path of the file.
  std::string write(const std::string& name, std::string_view content) const {
    std::ofstream(file(name), std::ios::binary) << content;
    return file(name);
  }

 private:
  std::string path_;
};

template <typename Value>
std::string bytes_of(Value value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename Value>
std::string bytes_of_all(const std::vector<int64_t>& values) {
  std::string bytes;
  for (const int64_t value : values) bytes += bytes_of(static_cast<Value>(value));
  return bytes;
}

// A Megatron index that can be wrong in any part.
struct IndexFile {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  uint64_t version = 1;
  uint8_t type = 8;
  std::vector<int64_t> lengths, pointers, documents;
  uint64_t num_sequences = 0, num_documents = 0;
  std::string tail;

  // Right for sequences of these lengths, each a document.
  IndexFile(uint8_t token_type, int64_t token_bytes, const std::vector<int64_t>& sequence_lengths)
      : type(token_type), lengths(sequence_lengths) {
    int64_t pointer = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      pointers.push_back(pointer);
      documents.push_back(static_cast<int64_t>(i));
      pointer += lengths[i] * token_bytes;
    }
    documents.push_back(static_cast<int64_t>(lengths.size()));
    count();
  }

  // After the arrays were changed.
  void count() {
    num_sequences = lengths.size();
    num_documents = documents.size();
  }

  std::string bytes() const {
    return magic + bytes_of(version) + bytes_of(type) + bytes_of(num_sequences) + bytes_of(num_documents) +
           bytes_of_all<int32_t>(lengths) + bytes_of_all<int64_t>(pointers) + bytes_of_all<int64_t>(documents) + tail;
  }
};

// `prefix`.bin and `prefix`.idx with one document of u16 tokens.
inline std::string write_u16_tokens(const TemporaryFolder& folder, const std::string& prefix,
                                    const std::vector<int64_t>& tokens) {
  folder.write(prefix + ".bin", bytes_of_all<uint16_t>(tokens));
  folder.write(prefix + ".idx", IndexFile(8, 2, {static_cast<int64_t>(tokens.size())}).bytes());
  return folder.file(prefix);
}

// A safetensors file of this header and data.
inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  return bytes_of(static_cast<uint64_t>(header.size())) + std::string(header) + std::string(data);
}

// The message of the InputError that `call` throws; "" and a failure when it throws none.
inline std::string input_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const base::InputError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no InputError";
  return "";
}

}  // namespace layline::trainer::formats::test
