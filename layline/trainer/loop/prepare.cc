#include "layline/trainer/loop/prepare.h"

#include "layline/cost/step.h"

namespace layline::trainer::loop {

namespace {

at::ScalarType scalar_type(config::Precision precision) {
  switch (precision) {
    case config::Precision::kBf16:
      return at::kBFloat16;
    case config::Precision::kFp32:
      return at::kFloat;
    case config::Precision::kFp64:
      return at::kDouble;
  }
  return at::kFloat;
}

data::DataSet open_data(const config::RunConfig& config, const std::vector<config::DataSource>& sources,
                        data::Order order) {
  data::DataSetOptions options{.sources = {},
                               .sequence_length = config.sequence_length,
                               .vocabulary = config.model.vocab,
                               .order = order,
                               .seed = static_cast<uint64_t>(config.seed)};
  for (const config::DataSource& source : sources) options.sources.push_back({source.path, source.weight});
  return data::DataSet(options);
}

}  // namespace

TrainingJob training_job(const config::RunConfig& config, const config::ResolvedLayout& resolved) {
  TrainingJob job;
  job.model = config.model;
  job.layout = resolved.layout;
  // The split that was priced.
  const memory::EndCosts ends = cost::Pricer(resolved.job).end_costs(resolved.layout);
  job.stages = layout::stages_of(resolved.layout, config.model.num_layers, ends.embedding_layers, ends.head_layers);
  job.sequence_length = config.sequence_length;
  job.global_batch = config.global_batch;
  job.dtype = scalar_type(config.precision);
  job.seed = static_cast<uint64_t>(config.seed);
  job.steps = config.steps;
  const config::OptimizerConfig& o = config.optimizer;
  job.optimizer = {.learning_rate = o.learning_rate,
                   .warmup_steps = o.warmup_steps,
                   .min_learning_rate = o.min_learning_rate,
                   .beta1 = o.beta1,
                   .beta2 = o.beta2,
                   .epsilon = o.epsilon,
                   .weight_decay = o.weight_decay,
                   .clip = o.clip};
  return job;
}

data::DataSet open_training_data(const config::RunConfig& config) {
  const bool is_shuffled = config.data.order == config::DataOrder::kShuffled;
  return open_data(config, config.data.train, is_shuffled ? data::Order::kShuffled : data::Order::kSequential);
}

data::DataSet open_validation_data(const config::RunConfig& config) {
  return open_data(config, config.data.valid, data::Order::kSequential);
}

}  // namespace layline::trainer::loop
