#include "layline/trainer/tokenize/index_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <system_error>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/base/file_descriptor.h"
#include "layline/trainer/formats/load_value.h"
#include "layline/trainer/formats/mapped_file.h"

namespace layline::trainer::tokenize {
namespace {

using formats::TokenType;

constexpr size_t kBufferBytes = 1 << 20;

uint8_t code_of(TokenType type) {
  switch (type) {
    case TokenType::kU8:
      return 1;
    case TokenType::kI8:
      return 2;
    case TokenType::kI16:
      return 3;
    case TokenType::kI32:
      return 4;
    case TokenType::kI64:
      return 5;
    case TokenType::kU16:
      break;
  }
  return 8;
}

class Writer {
 public:
  explicit Writer(const std::string& path)
      : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (file_.get() < 0) fail();
  }
  template <typename Value>
  void put(Value value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    put(std::string_view(bytes, sizeof value));
  }
  void put(std::string_view bytes) {
    buffer_ += bytes;
    if (buffer_.size() >= kBufferBytes) flush();
  }
  void finish() {
    flush();
    if (::fsync(file_.get()) != 0 || file_.close() != 0) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw base::RunError(path_, fmt::format("cannot write: {}", std::generic_category().message(errno)));
  }
  void flush() {
    base::write_fully(file_.get(), buffer_, path_);
    buffer_.clear();
  }

  const std::string& path_;
  base::FileDescriptor file_;
  std::string buffer_;
};

}  // namespace

void write_megatron_index(const std::string& path, TokenType type, const std::string& sequences_path,
                          int64_t num_documents) {
  constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
  const formats::MappedFile sequences(sequences_path);
  const auto count = static_cast<int64_t>(sequences.bytes().size() / sizeof(int64_t));
  const auto sequence = [&](int64_t i) {
    return Sequence::unpacked(formats::load_value<int64_t>(sequences.bytes().data(), i));
  };
  Writer writer(path);
  writer.put(kMagic);
  writer.put(uint64_t{1});
  writer.put(code_of(type));
  writer.put(static_cast<uint64_t>(count));
  writer.put(static_cast<uint64_t>(num_documents + 1));
  for (int64_t i = 0; i < count; ++i) writer.put(static_cast<int32_t>(sequence(i).num_tokens));
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    writer.put(offset);
    offset += sequence(i).num_tokens * formats::num_bytes(type);
  }
  for (int64_t i = 0; i < count; ++i) {
    if (sequence(i).begins_document) writer.put(i);
  }
  writer.put(count);
  writer.finish();
}

}  // namespace layline::trainer::tokenize
