// Follows all micro-batches of a pipeline through its stages at once.
#include "sim/analysis/plain_bound.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "sim/analysis/rank_bound.h"
#include "sim/ir/plain_ops.h"

namespace bubblescope::inline sim {

namespace {

/// The ops of a stage by their kinds.
using StageClasses = std::array<OpClass, kPlainKinds>;

/// A pipeline's stages, and the micro-batches that are followed.
struct Pipeline {
  std::int32_t first_stage = 0;
  std::int32_t end_stage = 0;
  std::int32_t first_microbatch = 0;
  std::size_t followed = 0;
  std::int64_t weight = 1;  ///< the micro-batches that each of them stands for

  std::int32_t microbatch(std::size_t at) const {
    return first_microbatch + static_cast<std::int32_t>(at);
  }
};

class PlainBound {
 public:
  PlainBound(const Schedule& schedule, std::span<const PlainStage> stages, const PlainTimes& times,
             const SplitBackwards& split)
      : schedule_(schedule),
        stages_(stages),
        times_(times),
        split_(split),
        classes_(stages.size()) {}

  Nanos find() {
    for (std::int32_t number = 0; number < schedule_.pipelines; ++number) {
      const Pipeline pipeline = find_pipeline(number);
      follow_forwards(pipeline);
      follow_backwards(pipeline);
      return_from_backwards(pipeline);
      return_from_forwards(pipeline);
    }
    std::vector<std::vector<OpClass>> of_rank(static_cast<std::size_t>(schedule_.shape.ranks));
    for (std::size_t stage = 0; stage < classes_.size(); ++stage)
      for (const OpClass& op_class : classes_[stage])
        if (op_class.work > 0)
          of_rank[static_cast<std::size_t>(stages_[stage].rank)].push_back(op_class);
    for (std::vector<OpClass>& classes : of_rank)
      longest_ = std::max(longest_, bound_of_rank(std::move(classes), 0));
    return longest_;
  }

 private:
  Pipeline find_pipeline(std::int32_t number) const {
    const auto stages = static_cast<std::int32_t>(schedule_.stages_per_pipeline());
    Pipeline pipeline;
    pipeline.first_stage = number * stages;
    pipeline.end_stage = pipeline.first_stage + stages;
    const PlainStage& first = stages_[static_cast<std::size_t>(pipeline.first_stage)];
    pipeline.first_microbatch = first.first_microbatch;
    pipeline.followed = static_cast<std::size_t>(first.microbatches());
    if (split_.all && pipeline.followed > 1) {
      pipeline.weight = first.microbatches();
      pipeline.followed = 1;
    }
    return pipeline;
  }

  bool is_split(std::int32_t stage, std::int32_t microbatch) const {
    if (split_.all) return *split_.all;
    return split_.is_split[static_cast<std::size_t>(
               std::int64_t{stage} * schedule_.shape.microbatches + microbatch)] != 0;
  }

  OpKind backward_of(std::int32_t stage, std::int32_t microbatch) const {
    return is_split(stage, microbatch) ? OpKind::kInputGrad : OpKind::kBackward;
  }

  /// How long the activation that a stage waits for travels, if any.
  Nanos activation_travel(std::int32_t stage, std::int32_t microbatch) const {
    const bool receives = stages_[static_cast<std::size_t>(stage)].receives_input;
    return receives ? times_.activation(stage - 1, microbatch) : 0;
  }
  Nanos gradient_travel(std::int32_t stage, std::int32_t microbatch) const {
    const bool receives = stages_[static_cast<std::size_t>(stage)].receives_gradients;
    return receives ? times_.gradient(stage + 1, microbatch) : 0;
  }

  OpClass& class_of(std::int32_t stage, OpKind kind) {
    return classes_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(kind)];
  }

  /// Adds an op behind a chain, and returns the end of the two.
  Nanos add(const Op& op, Nanos head, const Pipeline& pipeline) {
    const Nanos duration = times_.of(op);
    OpClass& op_class = class_of(op.stage, op.kind);
    op_class.head = std::min(op_class.head, head);
    op_class.work += duration * pipeline.weight;
    longest_ = std::max(longest_, head + duration);
    return head + duration;
  }

  /// Chains that end with the activations of each stage.
  void follow_forwards(const Pipeline& pipeline) {
    chain_.assign(pipeline.followed, 0);
    for (std::int32_t stage = pipeline.first_stage; stage < pipeline.end_stage; ++stage)
      for (std::size_t at = 0; at < chain_.size(); ++at) {
        const Op op = forward(stage, pipeline.microbatch(at));
        const Nanos travel = activation_travel(stage, op.microbatch);
        chain_[at] = add(op, chain_[at] + travel, pipeline);
      }
  }

  /// And on with the gradients. An op that waits for a gradient waits no longer for its own
  /// forward, which is earlier in the same chain.
  void follow_backwards(const Pipeline& pipeline) {
    for (std::int32_t stage = pipeline.end_stage; stage-- > pipeline.first_stage;)
      for (std::size_t at = 0; at < chain_.size(); ++at) {
        Op op = forward(stage, pipeline.microbatch(at));
        const Nanos travel = gradient_travel(stage, op.microbatch);
        op.kind = backward_of(stage, op.microbatch);
        chain_[at] = add(op, chain_[at] + travel, pipeline);
        op.kind = OpKind::kWeightGrad;
        if (is_split(stage, op.microbatch)) add(op, chain_[at], pipeline);
      }
  }

  /// Chains that begin with the gradients of each stage; what follows an op is its tail.
  void return_from_backwards(const Pipeline& pipeline) {
    chain_.assign(pipeline.followed, 0);
    for (std::int32_t stage = pipeline.first_stage; stage < pipeline.end_stage; ++stage)
      for (std::size_t at = 0; at < chain_.size(); ++at) {
        const std::int32_t microbatch = pipeline.microbatch(at);
        const OpKind kind = backward_of(stage, microbatch);
        Nanos tail = 0;
        if (stage > pipeline.first_stage)
          tail = chain_[at] + gradient_travel(stage - 1, microbatch);
        if (is_split(stage, microbatch)) {
          class_of(stage, OpKind::kWeightGrad).tail = 0;
          tail = std::max(tail, times_.of(OpKind::kWeightGrad, stage, microbatch));
        }
        class_of(stage, kind).tail = std::min(class_of(stage, kind).tail, tail);
        chain_[at] = tail + times_.of(kind, stage, microbatch);
      }
  }

  /// And those that begin with the activations.
  void return_from_forwards(const Pipeline& pipeline) {
    for (std::int32_t stage = pipeline.end_stage; stage-- > pipeline.first_stage;)
      for (std::size_t at = 0; at < chain_.size(); ++at) {
        const std::int32_t microbatch = pipeline.microbatch(at);
        Nanos tail = chain_[at];
        if (stage + 1 < pipeline.end_stage) tail += activation_travel(stage + 1, microbatch);
        OpClass& forwards = class_of(stage, OpKind::kForward);
        forwards.tail = std::min(forwards.tail, tail);
        chain_[at] = tail + times_.of(OpKind::kForward, stage, microbatch);
      }
  }

  const Schedule& schedule_;
  std::span<const PlainStage> stages_;
  const PlainTimes& times_;
  const SplitBackwards& split_;
  std::vector<StageClasses> classes_;  ///< [stage]
  std::vector<Nanos> chain_;           ///< of each micro-batch that is followed
  Nanos longest_ = 0;
};

}  // namespace

Nanos bound_plain_step(const Schedule& schedule, std::span<const PlainStage> stages,
                       const PlainTimes& times, const SplitBackwards& split) {
  return PlainBound(schedule, stages, times, split).find();
}

}  // namespace bubblescope::inline sim
