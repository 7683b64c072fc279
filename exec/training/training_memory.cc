// Measures the memory of a stage's ops by running each once.
#include <optional>
#include <utility>

#include "exec/training/held_bytes.h"
#include "exec/training/training.h"

namespace bubblescope::exec {

namespace {

/// The memory of all slices of one micro-batch.
struct HeldBytes {
  Bytes kept = 0;        ///< between forward and input gradient
  Bytes checkpoint = 0;  ///< between forward and input gradient, with recomputation
  Bytes left = 0;        ///< between input gradient and weight gradient
};

/// Runs all slices forward from first to last, and then backward.
class StageDryRun {
 public:
  StageDryRun(const Stage& stage, std::int32_t slices, const Tokens& tokens)
      : stage_(stage), slices_(slices), tokens_(tokens) {
    if (slices > 1) context_ = make_context(stage.shape);
  }

  HeldBytes run(Recompute recompute) {
    std::vector<Activations> saved;
    HeldBytes held;
    for (std::int32_t slice = 0; slice < slices_; ++slice) {
      saved.push_back(run_forward(stage_, between(slice), tokens_of(slice), at(slice)).saved);
      if (stage_.inputs > 1)
        saved.back().joined.assign(static_cast<std::size_t>(stage_.inputs), between(slice));
      const Bytes context = context_bytes(stage_.shape, slices_, slice);
      held.kept += held_bytes(saved.back()) + context;
      Activations without = saved.back();
      drop_attention(without);
      const Bytes joined = stage_.inputs > 1 ? stage_.inputs : 0;
      const Bytes input = stage_.first ? 0 : (1 + joined) * between(slice).bytes();
      held.checkpoint +=
          context + (recompute == Recompute::kSelective ? held_bytes(without) : input);
    }
    for (std::int32_t slice = slices_; slice-- > 0;)
      held.left +=
          held_bytes(run_input_grad(stage_, std::move(saved[static_cast<std::size_t>(slice)]),
                                    between(slice), 1, at(slice))
                         .work);
    return held;
  }

 private:
  Positions positions(std::int32_t slice) const {
    return positions_of(stage_.shape.sequence, slices_, slice);
  }

  Matrix between(std::int32_t slice) const {
    return Matrix(stage_.shape.batch * positions(slice).count, stage_.shape.width);
  }

  Tokens tokens_of(std::int32_t slice) const {
    return take_tokens(tokens_, stage_.shape.sequence, positions(slice));
  }

  /// Null if sequences are not sliced.
  const Slice* at(std::int32_t slice) {
    if (slices_ == 1) return nullptr;
    slice_.emplace(Slice{positions(slice), context_});
    return &*slice_;
  }

  const Stage& stage_;
  std::int32_t slices_;
  const Tokens& tokens_;
  SliceContext context_;
  std::optional<Slice> slice_;
};

/// The memory that a shard holds from its forward until its weight gradient.
Bytes measure_shard(const StagePlan& plan, const Tokens& tokens) {
  Activations saved;
  saved.head_normed = Matrix(plan.shape.rows(), plan.shape.width);
  saved.probabilities =
      run_shard(make_stage(plan), saved.head_normed, tokens.targets).probabilities;
  return held_bytes(saved);
}

}  // namespace

/// Slices need different amounts for attention, so the memory of an op is the mean over slices.
MemoryModel training_memory(const Schedule& schedule, const TrainingOptions& options) {
  const std::int32_t slices = schedule.shape.slices;
  const Tokens tokens = make_tokens(options, 0, 0);
  MemoryModel memory;
  for (std::int32_t at = 0; at < schedule.stages(); ++at) {
    if (schedule.is_side_stage(at)) {
      const Bytes kept = measure_shard(plan_of(schedule, options, at), tokens) / slices;
      memory.checkpoint_bytes.push_back(kept);
      memory.activation_bytes.push_back({kept, 0, -kept});
      continue;
    }
    const Stage stage = make_stage(plan_of(schedule, options, at));
    const HeldBytes held = StageDryRun(stage, slices, tokens).run(schedule.recompute(at));
    const Bytes kept = held.kept / slices;
    const Bytes left = held.left / slices;
    memory.checkpoint_bytes.push_back(held.checkpoint / slices);
    memory.activation_bytes.push_back({kept, left - kept, -left});
  }
  return memory;
}

}  // namespace bubblescope::exec
