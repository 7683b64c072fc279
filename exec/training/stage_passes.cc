// Runs the passes with what the stage holds, and keeps what later ones need.
#include "exec/training/stage_passes.h"

#include <utility>

#include "exec/training/vocabulary_shard.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

void refuse_before(const Op& op, const char* lack) {
  throw Error(Fault::kProblem, to_string(op) + " runs before " + lack);
}

double share_of_tokens(const Op& op, const TrainedStages& stages) {
  const std::int32_t sequence = stages.options().model.sequence;
  return static_cast<double>(
             positions_of(sequence, stages.schedule().shape.slices, op.slice).count) /
         sequence;
}

void StagePasses::compute_forward(const Op& op) {
  const Stage& stage = stages_.weights_of(op);
  MicrobatchState& state = stages_.state_of(op);
  std::vector<Matrix> inputs = messages_.read(Direction::kForward, op);
  Matrix input = stage.first ? Matrix() : join(stage, inputs);
  SavedForward kept;
  if (state.recompute == Recompute::kFull) kept.input = input;
  const std::optional<Slice> slice = stages_.slice_of(op);
  StageOutput result =
      run_forward(stage, std::move(input), stages_.tokens_of(op), slice ? &*slice : nullptr);
  state.loss = result.loss;
  if (!stages_.schedule().is_last(op.stage))
    messages_.write(Direction::kForward, op, std::move(result.output));
  if (stages_.schedule().forward_only)
    return stages_.free_context(op, stages_.schedule().shape.slices - 1);
  if (state.recompute == Recompute::kSelective) drop_attention(result.saved);
  if (state.recompute != Recompute::kFull) kept.saved = std::move(result.saved);
  if (inputs.size() > 1) kept.saved.joined = std::move(inputs);
  state.complete = state.recompute == Recompute::kNone;
  state.kept = std::move(kept);
  stages_.set_held(op, held_bytes(*state.kept) + stages_.context_bytes(op));
}

namespace {

/// The inputs of a stage that joins several were kept, and stay.
void recompute_all(const Stage& stage, SavedForward& kept, const Tokens& tokens,
                   const Slice* slice) {
  std::vector<Matrix> joined = std::move(kept.saved.joined);
  kept.saved = run_forward(stage, std::move(kept.input), tokens, slice).saved;
  kept.saved.joined = std::move(joined);
}

}  // namespace

void StagePasses::recompute_forward(const Op& op) {
  MicrobatchState& state = stages_.state_of(op);
  if (!state.kept) refuse_before(op, "its input has arrived");
  const Stage& stage = stages_.weights_of(op);
  const std::optional<Slice> slice = stages_.slice_of(op);
  const Slice* const cut = slice ? &*slice : nullptr;
  if (state.recompute == Recompute::kSelective)
    recompute_attention(stage, state.kept->saved, cut);
  else
    recompute_all(stage, *state.kept, stages_.tokens_of(op), cut);
  state.kept->input = Matrix();
  state.complete = true;
  stages_.set_held(op, held_bytes(*state.kept) + stages_.context_bytes(op));
}

/// The gradient of a stage's output: the sum of those of its readers, or of its shards.
Matrix StagePasses::read_output_grad(const Op& op) {
  std::vector<Matrix> grads = messages_.read(Direction::kBackward, op);
  if (grads.empty()) return Matrix();
  const TransformerShape& model = stages_.options().model;
  if (messages_.has_early_grads() && op.stage + 1 == model_stages(stages_.schedule()))
    return stored(
        combine_early(grads, model.width,
                      stages_.gradient_scale() * static_cast<float>(share_of_tokens(op, stages_))),
        model.precision);
  return sum_grads(std::move(grads), model.precision);
}

void StagePasses::compute_input_grad(const Op& op) {
  const Stage& stage = stages_.weights_of(op);
  MicrobatchState& state = stages_.state_of(op);
  if (!state.kept || !state.complete) refuse_before(op, "its saved activations are complete");
  Matrix output_grad = read_output_grad(op);
  const std::optional<Slice> slice = stages_.slice_of(op);
  StageGrad result = run_input_grad(stage, std::move(state.kept->saved), std::move(output_grad),
                                    stages_.gradient_scale(), slice ? &*slice : nullptr);
  state.kept.reset();
  stages_.free_context(op, 0);
  state.work = std::move(result.work);
  if (!stage.first) messages_.write_grads(op, std::move(result.input_grads));
  stages_.set_held(op, held_bytes(*state.work));
}

void StagePasses::compute_weight_grad(const Op& op) {
  MicrobatchState& state = stages_.state_of(op);
  if (!state.work) refuse_before(op, "its input gradient has run");
  run_weight_grad(*state.work, stages_.gradients_of(op));
  state.work.reset();
  stages_.set_held(op, 0);
  if (op.slice == 0) stages_.end_microbatch(op);
}

}  // namespace bubblescope::exec
