#include "layline/trainer/checkpoint/verify.h"

#include <tbb/parallel_for.h>

#include "layline/base/error.h"

namespace layline::trainer::checkpoint {

std::vector<std::string> verify(const CheckpointReader& reader, base::ProgressSink* sink) {
  const size_t num_files = reader.manifest().files.size();
  std::vector<std::string> mistakes(num_files);
  base::Progress progress(sink, "verifying files", static_cast<int64_t>(num_files));
  tbb::parallel_for(size_t{0}, num_files, [&](size_t i) {
    try {
      reader.verify_file(i);
    } catch (const base::InputError& error) {
      mistakes[i] = error.what();
    }
    progress.advance();
  });
  std::erase(mistakes, "");
  return mistakes;
}

}  // namespace layline::trainer::checkpoint
