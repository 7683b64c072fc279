// Runs the passes of shards.
#include "exec/training/shard_passes.h"

#include <utility>

#include "exec/training/stage_passes.h"

namespace bubblescope::exec {

void ShardPasses::run(const Instruction& instruction) {
  const Op& op = instruction.op;
  if (op.kind == OpKind::kForward) return run_forward(op);
  if (op.kind == OpKind::kInputGrad) return send_early_grad(op);
  if (op.kind == OpKind::kBackward || op.kind == OpKind::kWeightGrad) return end(op);
  if (op.kind == OpKind::kOptimizer && stages_.has_program_updates()) stages_.update(instruction);
}

void ShardPasses::run_forward(const Op& op) {
  SavedForward kept;
  kept.saved.head_normed = std::move(messages_.read(Direction::kForward, op).front());
  kept.saved.tokens = stages_.tokens_of(op);
  ShardOutput output =
      run_shard(stages_.weights_of(op), kept.saved.head_normed, kept.saved.tokens.targets);
  kept.saved.probabilities = std::move(output.probabilities);
  exchange_.put(op, std::move(output.statistics));
  stages_.state_of(op).kept = std::move(kept);
  stages_.set_held(op, held_bytes(*stages_.state_of(op).kept));
}

/// The last stage corrects it, with the statistics that are sent along.
void ShardPasses::send_early_grad(const Op& op) {
  const MicrobatchState& state = stages_.state_of(op);
  if (!state.kept) refuse_before(op, "its forward has run");
  const Activations& saved = state.kept->saved;
  messages_.write(Direction::kBackward, op,
                  pull_back_early(stages_.weights_of(op), saved.probabilities, exchange_.get(op),
                                  saved.tokens.targets));
}

/// The statistics of a micro-batch on all shards. The first shard also counts the loss.
std::vector<ShardStatistics> ShardPasses::statistics_of(const Op& op) {
  std::vector<ShardStatistics> all;
  for (std::int32_t stage = model_stages(stages_.schedule()); stage < stages_.schedule().stages();
       ++stage)
    all.push_back(exchange_.get({stage, op.microbatch, op.slice}));
  if (op.stage == model_stages(stages_.schedule()))
    stages_.state_of(op).loss = find_loss(all) * share_of_tokens(op, stages_);
  return all;
}

void ShardPasses::end(const Op& op) {
  MicrobatchState& state = stages_.state_of(op);
  if (!state.kept) refuse_before(op, "its forward has run");
  Activations saved = std::move(state.kept->saved);
  state.kept.reset();
  const Stage& shard = stages_.weights_of(op);
  const auto own = static_cast<std::size_t>(op.stage - model_stages(stages_.schedule()));
  const Matrix logits_grad =
      find_logits_grad(shard, std::move(saved.probabilities),
                       find_corrections(statistics_of(op), own), saved.tokens.targets,
                       stages_.gradient_scale() * static_cast<float>(share_of_tokens(op, stages_)));
  if (op.kind == OpKind::kBackward)
    messages_.write(Direction::kBackward, op, pull_back_logits(shard, logits_grad));
  multiply(transposed(whole(saved.head_normed)), whole(logits_grad),
           onto(stages_.gradients_of(op).front()), {1, true});
  stages_.set_held(op, 0);
}

}  // namespace bubblescope::exec
