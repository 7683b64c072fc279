// Training on one rank, in the order in which the micro-batches are numbered.
#include <utility>

#include "exec/training/held_bytes.h"
#include "exec/training/training.h"

namespace bubblescope {

namespace {

class SerialTraining {
 public:
  SerialTraining(const Schedule& schedule, const TrainingOptions& options)
      : schedule_(schedule), options_(options) {
    const std::int32_t stages = schedule.stages_per_pipeline();
    for (std::int32_t stage = 0; stage < stages; ++stage)
      result_.stages.push_back(make_stage({options.model, stage, stages, options.seed}));
    optimizers_.resize(result_.stages.size());
  }

  void run_step(std::int32_t step) {
    result_.gradients.clear();
    for (const Stage& stage : result_.stages)
      result_.gradients.push_back(zeros_like(stage.weights));
    double loss = 0;
    for (std::int32_t microbatch = 0; microbatch < schedule_.shape.microbatches; ++microbatch)
      loss += run_microbatch(make_tokens(options_, step, microbatch));
    result_.losses.push_back(loss / schedule_.shape.microbatches);
    if (schedule_.forward_only) return;
    for (std::size_t stage = 0; stage < result_.stages.size(); ++stage)
      update(result_.stages[stage].weights, result_.gradients[stage], optimizers_[stage],
             options_.optimizer);
  }

  TrainingResult take() { return std::move(result_); }

 private:
  double run_microbatch(const Tokens& tokens) {
    std::vector<Activations> saved;
    Matrix between;
    double loss = 0;
    for (const Stage& stage : result_.stages) {
      StageOutput made = run_forward(stage, std::move(between), tokens);
      between = std::move(made.output);
      loss += made.loss;
      saved.push_back(std::move(made.saved));
    }
    if (schedule_.forward_only) return loss;
    const float scale = 1 / static_cast<float>(schedule_.shape.microbatches);
    for (std::size_t stage = saved.size(); stage-- > 0;) {
      StageGrad made =
          run_input_grad(result_.stages[stage], std::move(saved[stage]), std::move(between), scale);
      between = std::move(made.input_grad);
      run_weight_grad(made.work, result_.gradients[stage]);
    }
    return loss;
  }

  const Schedule& schedule_;
  const TrainingOptions& options_;
  std::vector<OptimizerState> optimizers_;
  TrainingResult result_;
};

}  // namespace

TrainingResult train_serially(const Schedule& schedule, const TrainingOptions& options,
                              std::int32_t steps) {
  SerialTraining training(schedule, options);
  for (std::int32_t step = 0; step < steps; ++step) training.run_step(step);
  return training.take();
}

MemoryModel training_memory(const Schedule& schedule, const TrainingOptions& options) {
  const std::int32_t stages = schedule.stages_per_pipeline();
  const Tokens tokens = make_tokens(options, 0, 0);
  MemoryModel memory;
  for (std::int32_t at = 0; at < schedule.stages(); ++at) {
    const Stage stage = make_stage({options.model, at % stages, stages, options.seed});
    const Matrix between(options.model.rows(), options.model.width);
    Activations saved = run_forward(stage, between, tokens).saved;
    const Bytes kept = held_bytes(saved);
    Activations without = saved;
    drop_attention(without);
    const bool selective = schedule.recompute(at) == Recompute::kSelective;
    const Bytes input = stage.first ? 0 : between.bytes();
    memory.checkpoint_bytes.push_back(selective ? held_bytes(without) : input);
    const Bytes left = held_bytes(run_input_grad(stage, std::move(saved), between, 1).work);
    memory.activation_bytes.push_back({kept, left - kept, -left});
  }
  return memory;
}

}  // namespace bubblescope
