// Random jobs of the trainer with a legal layout: Llama-shaped models from tiny to 405 billion parameters, and odd
// ones; up to 4,096 ranks.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "layline/layout/layout.h"
#include "layline/spec/job.h"
#include "layline/trainer/loop/rank_trainer.h"

namespace layline::trainer::dryrun {

struct Trial {
  spec::Job job;
  layout::Layout layout;
};

std::string to_text(const Trial& trial);
// As the trainer runs it, with the planner's stages.
loop::TrainingJob training_job(const Trial& trial);

// The same trials from the same seed.
class TrialGenerator {
 public:
  enum class Scope { kAll, kQuick };  // kQuick: few layers and stages only, so that dry runs take little time

  explicit TrialGenerator(uint64_t seed, Scope scope = Scope::kAll) : random_(seed), scope_(scope) {}

  Trial next();

 private:
  template <typename T>
  T one_of(const std::vector<T>& values) {
    return values[random_() % values.size()];
  }
  bool one_in(uint64_t n) { return random_() % n == 0; }

  spec::Model model();
  spec::Model odd_model();
  void draw_axes(layout::Layout& layout);
  void draw_kernels(layout::Layout& layout);
  void draw_pipeline(layout::Layout& layout, int64_t num_layers);
  Trial draw();

  std::mt19937_64 random_;
  Scope scope_;
};

}  // namespace layline::trainer::dryrun
