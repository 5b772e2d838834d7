// An open file or socket that is closed at the end of a scope.
#pragma once

#include <unistd.h>

#include <utility>

namespace layline::base {

class FileDescriptor {
 public:
  explicit FileDescriptor(int value) : value_(value) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (value_ >= 0) ::close(value_);
  }

  int get() const { return value_; }  // below 0: it could not be opened
  // Left to the caller to close.
  int release() { return std::exchange(value_, -1); }
  // What close() says, which some file systems report lost writes by.
  int close() {
    const int value = release();
    return value >= 0 ? ::close(value) : 0;
  }

 private:
  int value_;
};

}  // namespace layline::base
