// An open file that is closed at the end of a scope.
#pragma once

#include <unistd.h>

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
  // What close() says, which some file systems report lost writes by.
  int close() {
    const int result = value_ >= 0 ? ::close(value_) : 0;
    value_ = -1;
    return result;
  }

 private:
  int value_;
};

}  // namespace layline::base
