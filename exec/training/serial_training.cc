// Trains on one rank, micro-batch after micro-batch. Any version of the weights that a micro-batch
// reads comes from backwards of earlier micro-batches.
#include "exec/training/serial_training.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "exec/training/training.h"

namespace bubblescope::exec {

namespace {

/// The stages of the whole model that one reads in a direction, without shards.
std::vector<std::size_t> stages_to_read(const Schedule& schedule, Direction direction,
                                        std::int32_t stage) {
  std::vector<std::size_t> stages;
  for (const std::int32_t source : sources_of(schedule, direction, stage))
    if (source < model_stages(schedule)) stages.push_back(static_cast<std::size_t>(source));
  return stages;
}

/// Moves every weight to one of the two numbers next to it.
void disturb(Stage& stage) {
  std::uint32_t state = 1;
  for (Matrix& matrix : stage.weights)
    for (float& value : matrix.values) {
      state = state * 1664525U + 1013904223U;
      const float limit = std::numeric_limits<float>::infinity();
      value = std::nextafter(value, (state >> 31U) != 0 ? limit : -limit);
    }
}

class SerialTraining {
 public:
  SerialTraining(const Schedule& schedule, const TrainingOptions& options)
      : schedule_(schedule),
        options_(options),
        uses_(weight_uses(schedule)),
        scale_(gradient_scale(schedule)),
        update_scales_(update_scales(schedule)) {
    for (std::int32_t stage = 0; stage < model_stages(schedule); ++stage) {
      versions_.push_back({make_stage(plan_whole(schedule, options, stage))});
      sources_.push_back(stages_to_read(schedule, Direction::kForward, stage));
      readers_.push_back(stages_to_read(schedule, Direction::kBackward, stage));
    }
    for (const std::vector<Stage>& versions : versions_) result_.initial.push_back(versions[0]);
    for (const std::vector<Stage>& versions : versions_)
      gradients_.push_back(zeros_like(versions[0].weights));
    optimizers_.resize(versions_.size());
    result_.gradients.resize(versions_.size());
  }

  void disturb_weights() {
    for (std::vector<Stage>& versions : versions_) disturb(versions[0]);
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
    std::vector<Matrix> outputs;
    double loss = 0;
    for (std::size_t stage = 0; stage < versions_.size(); ++stage) {
      const Stage& weights = read(stage, microbatch);
      std::vector<Matrix> inputs;
      for (const std::size_t source : sources_[stage]) inputs.push_back(outputs[source]);
      Matrix input = inputs.empty() ? Matrix() : join(weights, inputs);
      StageOutput result =
          run_forward(weights, std::move(input), look_ahead(tokens, options_, weights.ahead));
      outputs.push_back(std::move(result.output));
      loss += result.loss;
      saved.push_back(std::move(result.saved));
      if (inputs.size() > 1) saved.back().joined = std::move(inputs);
    }
    if (schedule_.forward_only) return loss;
    run_backwards(microbatch, std::move(saved));
    for (std::size_t stage = 0; stage < versions_.size(); ++stage)
      if (ends_update(stage, static_cast<std::size_t>(microbatch))) update_stage(stage);
    return loss;
  }

  void run_backwards(std::int32_t microbatch, std::vector<Activations> saved) {
    std::vector<std::vector<Matrix>> input_grads(saved.size());
    for (std::size_t stage = saved.size(); stage-- > 0;) {
      std::vector<Matrix> grads;
      for (const std::size_t reader : readers_[stage]) {
        const auto& read_there = sources_[reader];
        const auto input = std::find(read_there.begin(), read_there.end(), stage);
        grads.push_back(
            std::move(input_grads[reader][static_cast<std::size_t>(input - read_there.begin())]));
      }
      Matrix output_grad =
          grads.empty() ? Matrix() : sum_grads(std::move(grads), options_.model.precision);
      StageGrad result = run_input_grad(read(stage, microbatch), std::move(saved[stage]),
                                        std::move(output_grad), scale_);
      input_grads[stage] = std::move(result.input_grads);
      run_weight_grad(result.work, gradients_[stage]);
    }
  }

  /// Replicas with one micro-batch each make a version of the weights together.
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
  std::vector<std::vector<Stage>> versions_;       ///< [stage][version], of the current step
  std::vector<std::vector<std::size_t>> sources_;  ///< [stage]: those that it reads
  std::vector<std::vector<std::size_t>> readers_;  ///< [stage]: those that read it
  std::vector<std::vector<Matrix>> gradients_;     ///< since the last update of any step
  std::vector<OptimizerState> optimizers_;
  TrainingResult result_;
};

}  // namespace

std::int32_t model_stages(const Schedule& schedule) {
  return schedule.stages_per_pipeline() - schedule.side_stages;
}

StagePlan plan_whole(const Schedule& schedule, const TrainingOptions& options, std::int32_t stage) {
  const std::int32_t stages = model_stages(schedule);
  StagePlan plan{options.model, stage % stages, stages, options.seed};
  if (schedule.graph.is_chain() || schedule.side_stages > 0) return plan;
  StageForm form{schedule.is_first(stage), schedule.is_last(stage)};
  form.inputs = std::max(1, static_cast<std::int32_t>(std::ssize(schedule.graph.inputs(stage))));
  for (std::int32_t before = 0; form.last && before < stage; ++before)
    form.ahead += schedule.is_last(before) ? 1 : 0;
  plan.special = form;
  return plan;
}

StagePlan plan_of(const Schedule& schedule, const TrainingOptions& options, std::int32_t stage) {
  const std::int32_t shards = schedule.side_stages;
  if (shards == 0) return plan_whole(schedule, options, stage);
  const std::int32_t chain = model_stages(schedule);
  StagePlan plan = plan_whole(schedule, options, std::min(stage, chain - 1));
  StageForm form = plan.form();
  form.has_head = false;
  if (stage >= chain) form.shard = find_shard(options.model.vocabulary, stage - chain, shards);
  plan.special = form;
  return plan;
}

TrainingResult train_serially(const Schedule& schedule, const TrainingOptions& options,
                              std::int32_t steps) {
  SerialTraining training(schedule, options);
  for (std::int32_t step = 0; step < steps; ++step) training.run_step(step);
  return training.take();
}

TrainingResult train_disturbed(const Schedule& schedule, const TrainingOptions& options,
                               std::int32_t steps) {
  SerialTraining training(schedule, options);
  training.disturb_weights();
  for (std::int32_t step = 0; step < steps; ++step) training.run_step(step);
  return training.take();
}

}  // namespace bubblescope::exec
