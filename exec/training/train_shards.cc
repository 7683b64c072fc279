// Trains the shards of a split output layer: pass S is the forward of a shard, pass T its full
// backward, or its weight gradient if the input gradient belongs to S.
#include <utility>

#include "exec/training/training.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// A slice's fraction of the tokens of its micro-batch, over which the loss is averaged.
double share_of(const Op& op, const Schedule& schedule, const TransformerShape& model) {
  return static_cast<double>(positions_of(model.sequence, schedule.shape.slices, op.slice).count) /
         model.sequence;
}

}  // namespace

void Training::run_shard_pass(const Instruction& instruction) {
  const Op& op = instruction.op;
  if (op.kind == OpKind::kForward) return run_shard_forward(op);
  if (op.kind == OpKind::kInputGrad) return send_early_grad(op);
  if (op.kind == OpKind::kBackward || op.kind == OpKind::kWeightGrad) return end_shard(op);
  if (op.kind == OpKind::kOptimizer && program_updates_) update(replica_of(instruction));
}

void Training::run_shard_forward(const Op& op) {
  SavedForward kept;
  kept.saved.head_normed = std::move(messages_.read(Direction::kForward, op).front());
  kept.saved.tokens = tokens_of(op);
  ShardOutput output = run_shard(weights_of(op), kept.saved.head_normed, kept.saved.tokens.targets);
  kept.saved.probabilities = std::move(output.probabilities);
  shard_exchange_.put(op, std::move(output.statistics));
  state_of(op).kept = std::move(kept);
  set_held(op, held_bytes(*state_of(op).kept));
}

/// The last stage corrects it, with the statistics that are sent along.
void Training::send_early_grad(const Op& op) {
  const MicrobatchState& state = state_of(op);
  if (!state.kept) refuse_before(op, "its forward has run");
  const Activations& saved = state.kept->saved;
  messages_.write(Direction::kBackward, op,
                  pull_back_early(weights_of(op), saved.probabilities, shard_exchange_.get(op),
                                  saved.tokens.targets));
}

/// The statistics of a micro-batch on all shards. The first shard also counts the loss.
std::vector<ShardStatistics> Training::statistics_of(const Op& op) {
  std::vector<ShardStatistics> all;
  for (std::int32_t stage = model_stages(schedule_); stage < schedule_.stages(); ++stage)
    all.push_back(shard_exchange_.get({stage, op.microbatch, op.slice}));
  if (op.stage == model_stages(schedule_))
    state_of(op).loss = find_loss(all) * share_of(op, schedule_, options_.model);
  return all;
}

void Training::end_shard(const Op& op) {
  MicrobatchState& state = state_of(op);
  if (!state.kept) refuse_before(op, "its forward has run");
  Activations saved = std::move(state.kept->saved);
  state.kept.reset();
  const Stage& shard = weights_of(op);
  const auto own = static_cast<std::size_t>(op.stage - model_stages(schedule_));
  const Matrix logits_grad = find_logits_grad(
      shard, std::move(saved.probabilities), find_corrections(statistics_of(op), own),
      saved.tokens.targets, scale_ * static_cast<float>(share_of(op, schedule_, options_.model)));
  if (op.kind == OpKind::kBackward)
    messages_.write(Direction::kBackward, op, pull_back_logits(shard, logits_grad));
  multiply(transposed(whole(saved.head_normed)), whole(logits_grad),
           onto(stages_[stage_replicas_.find(op)].gradients.front()), {1, true});
  set_held(op, 0);
}

/// The gradient of a stage's output: the sum of those of its readers, or of its shards.
Matrix Training::read_output_grad(const Op& op) {
  std::vector<Matrix> grads = messages_.read(Direction::kBackward, op);
  if (grads.empty()) return Matrix();
  const TransformerShape& model = options_.model;
  if (messages_.has_early_grads() && op.stage + 1 == model_stages(schedule_))
    return stored(
        combine_early(grads, model.width,
                      scale_ * static_cast<float>(share_of(op, schedule_, options_.model))),
        model.precision);
  return sum_grads(std::move(grads), model.precision);
}

}  // namespace bubblescope::exec
