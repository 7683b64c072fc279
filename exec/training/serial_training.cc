// Trains on one rank, micro-batch after micro-batch. Any version of the weights that a micro-batch
// reads comes from backwards of earlier micro-batches.
#include "exec/training/serial_training.h"

#include <utility>

#include "exec/training/training.h"

namespace bubblescope::exec {

namespace {

class SerialTraining {
 public:
  SerialTraining(const Schedule& schedule, const TrainingOptions& options)
      : schedule_(schedule),
        options_(options),
        uses_(weight_uses(schedule)),
        scale_(gradient_scale(schedule)),
        update_scales_(update_scales(schedule)) {
    const std::int32_t stages = schedule.stages_per_pipeline();
    for (std::int32_t stage = 0; stage < stages; ++stage)
      versions_.push_back({make_stage(plan_of(schedule, options, stage))});
    for (const std::vector<Stage>& versions : versions_) result_.initial.push_back(versions[0]);
    for (const std::vector<Stage>& versions : versions_)
      gradients_.push_back(zeros_like(versions[0].weights));
    optimizers_.resize(versions_.size());
    result_.gradients.resize(versions_.size());
  }

  void run_step(std::int32_t step) {
    double loss = 0;
    for (std::int32_t microbatch = 0; microbatch < schedule_.shape.microbatches; ++microbatch)
      loss += run_microbatch(step, microbatch);
    result_.losses.push_back(loss / schedule_.shape.microbatches);
    for (std::size_t stage = 0; stage < versions_.size(); ++stage) {
      if (schedule_.forward_only)
        result_.gradients[stage] = gradients_[stage];
      else if (schedule_.weights.empty())
        update_stage(stage);
      versions_[stage] = {versions_[stage].back()};
    }
  }

  TrainingResult take() {
    for (std::vector<Stage>& versions : versions_)
      result_.stages.push_back(std::move(versions.back()));
    return std::move(result_);
  }

 private:
  double run_microbatch(std::int32_t step, std::int32_t microbatch) {
    const Tokens tokens = make_tokens(options_, step, microbatch);
    std::vector<Activations> saved;
    Matrix between;
    double loss = 0;
    for (std::size_t stage = 0; stage < versions_.size(); ++stage) {
      StageOutput result = run_forward(read(stage, microbatch), std::move(between), tokens);
      between = std::move(result.output);
      loss += result.loss;
      saved.push_back(std::move(result.saved));
    }
    if (schedule_.forward_only) return loss;
    for (std::size_t stage = saved.size(); stage-- > 0;) {
      StageGrad result = run_input_grad(read(stage, microbatch), std::move(saved[stage]),
                                        std::move(between), scale_);
      between = std::move(result.input_grad);
      run_weight_grad(result.work, gradients_[stage]);
    }
    for (std::size_t stage = 0; stage < versions_.size(); ++stage)
      if (ends_update(stage, static_cast<std::size_t>(microbatch))) update_stage(stage);
    return loss;
  }

  /// Replicas with one micro-batch each make a version together.
  bool ends_update(std::size_t stage, std::size_t microbatch) const {
    const std::vector<WeightUse>& uses = uses_[stage];
    if (!uses[microbatch].written) return false;
    return microbatch + 1 == uses.size() ||
           uses[microbatch + 1].written != uses[microbatch].written;
  }

  /// The weights are as stale as in the schedule.
  const Stage& read(std::size_t stage, std::int32_t microbatch) const {
    const WeightUse& use = uses_[stage][static_cast<std::size_t>(microbatch)];
    return versions_[stage].at(static_cast<std::size_t>(use.read));
  }

  void update_stage(std::size_t stage) {
    versions_[stage].push_back(versions_[stage].back());
    multiply(gradients_[stage], update_scales_[stage]);
    update(versions_[stage].back().weights, gradients_[stage], optimizers_[stage],
           options_.optimizer);
    std::vector<Matrix> zeros = zeros_like(gradients_[stage]);
    result_.gradients[stage] = std::exchange(gradients_[stage], std::move(zeros));
  }

  const Schedule& schedule_;
  const TrainingOptions& options_;
  std::vector<std::vector<WeightUse>> uses_;
  float scale_;
  std::vector<float> update_scales_;
  std::vector<std::vector<Stage>> versions_;    ///< [stage][version], of the current step
  std::vector<std::vector<Matrix>> gradients_;  ///< since the last update of any step
  std::vector<OptimizerState> optimizers_;
  TrainingResult result_;
};

}  // namespace

StagePlan plan_of(const Schedule& schedule, const TrainingOptions& options, std::int32_t stage) {
  const std::int32_t stages = schedule.stages_per_pipeline();
  return {options.model, stage % stages, stages, options.seed};
}

TrainingResult train_serially(const Schedule& schedule, const TrainingOptions& options,
                              std::int32_t steps) {
  SerialTraining training(schedule, options);
  for (std::int32_t step = 0; step < steps; ++step) training.run_step(step);
  return training.take();
}

}  // namespace bubblescope::exec
