// A folder for files that are of no use later.
#pragma once

#include <string>

namespace layline::sweep {

class Scratch {
 public:
  // Makes it; what an earlier one left there stays until it is written over. Throws base::InputError when it cannot.
  explicit Scratch(std::string folder);
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();  // removes it

  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace layline::sweep
