// Holds what ops read and write.
#include "exec/training/trained_stages.h"

#include <utility>

#include "exec/runtime/keep_memory.h"
#include "exec/training/blas.h"
#include "exec/training/expect_trainable.h"
#include "exec/training/program_updates.h"

namespace bubblescope::exec {

TrainedStages::TrainedStages(const Schedule& schedule, const Program& program,
                             const TrainingOptions& options, const Processes& processes)
    : schedule_(schedule),
      processes_(processes),
      options_(options),
      uses_(weight_uses(schedule)),
      scale_(exec::gradient_scale(schedule)),
      update_scales_(update_scales(schedule)),
      replicas_(schedule),
      memory_(static_cast<std::size_t>(schedule.shape.ranks)) {
  expect_trainable(schedule, options);
  keep_freed_memory();
  gemm_library();
  for (StageReplica replica = 0; replica < replicas_.size(); ++replica) make_replica(replica);
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops)
      if (op.kind == OpKind::kRecompute &&
          processes.runs(schedule.rank_of(op.stage, op.microbatch)))
        state_of(op).recompute = schedule.recompute(op.stage);
  has_program_updates_ = find_program_updates(schedule, program).updates;
}

void TrainedStages::make_replica(StageReplica replica) {
  StageState& state = stages_.emplace_back();
  if (!processes_.runs(replicas_.rank(replica))) return;
  const std::int32_t stage = replicas_.stage(replica);
  const std::int32_t microbatches = schedule_.shape.microbatches;
  std::vector<WeightUse> uses;
  for (std::int32_t at = 0; at < microbatches; ++at)
    if (replicas_.find(forward(stage, at)) == replica)
      uses.push_back(uses_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(at)]);
  state.weights = WeightVersions(make_stage(plan_of(schedule_, options_, stage)), std::move(uses));
  state.gradients = zeros_like(state.weights.newest().weights);
  state.last_gradients = state.gradients;
  state.microbatches.resize(static_cast<std::size_t>(microbatches) *
                            static_cast<std::size_t>(schedule_.shape.slices));
  state.contexts.resize(static_cast<std::size_t>(microbatches));
}

const WeightUse& TrainedStages::use_of(const Op& op) const {
  return uses_[static_cast<std::size_t>(op.stage)][static_cast<std::size_t>(op.microbatch)];
}

MicrobatchState& TrainedStages::state_of(const Op& op) {
  return stages_[replicas_.find(op)]
      .microbatches[static_cast<std::size_t>(schedule_.forward_index(op))];
}

const Stage& TrainedStages::weights_of(const Op& op) const {
  return stages_[replicas_.find(op)].weights.read(use_of(op).read, op);
}

Tokens TrainedStages::tokens_of(const Op& op) const {
  Tokens whole = make_tokens(options_, static_cast<std::int32_t>(losses_.size()), op.microbatch);
  const std::int32_t ahead = weights_of(op).ahead;
  if (ahead > 1) whole = look_ahead(std::move(whole), options_, ahead);
  const std::int32_t sequence = options_.model.sequence;
  return take_tokens(whole, sequence, positions_of(sequence, schedule_.shape.slices, op.slice));
}

/// All ops of a micro-batch on a stage are in one lane, so its context needs no lock.
std::optional<Slice> TrainedStages::slice_of(const Op& op) {
  if (schedule_.shape.slices == 1) return std::nullopt;
  SliceContext& context =
      stages_[replicas_.find(op)].contexts[static_cast<std::size_t>(op.microbatch)];
  if (context.qkv.empty()) context = make_context(options_.model);
  return Slice{positions_of(options_.model.sequence, schedule_.shape.slices, op.slice), context};
}

Bytes TrainedStages::context_bytes(const Op& op) const {
  return bubblescope::exec::context_bytes(options_.model, schedule_.shape.slices, op.slice);
}

void TrainedStages::free_context(const Op& op, std::int32_t last_slice) {
  if (op.slice == last_slice)
    stages_[replicas_.find(op)].contexts[static_cast<std::size_t>(op.microbatch)] = {};
}

void TrainedStages::set_held(const Op& op, Bytes bytes) {
  add_held(schedule_.rank_of(op.stage, op.microbatch),
           bytes - std::exchange(state_of(op).held, bytes));
}

void TrainedStages::add_held(std::int32_t rank, Bytes bytes) {
  memory_[static_cast<std::size_t>(rank)].add(bytes);
}

void TrainedStages::end_microbatch(const Op& op) {
  const StageReplica replica = replicas_.find(op);
  stages_[replica].weights.release(use_of(op).read);
  if (use_of(op).written && !has_program_updates_) update(replica);
}

/// Updates the current weights and resets the gradients.
void TrainedStages::update(StageReplica replica) {
  StageState& state = stages_[replica];
  multiply(state.gradients, update_scales_[stage_of(replica)]);
  state.weights.update(state.gradients, options_.optimizer);
  std::vector<Matrix> zeros = zeros_like(state.gradients);
  state.last_gradients = std::exchange(state.gradients, std::move(zeros));
}

}  // namespace bubblescope::exec
