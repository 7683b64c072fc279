// Walks the orders of a plain step: advances one rank after the other, each until it waits for a
// message. A Runner runs the ops: it knows what they and their messages take, and notes what is
// reported of them.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/analysis/plain_rank.h"
#include "sim/analysis/plain_stages.h"

namespace bubblescope::inline sim {

template <class Runner>
class PlainWalk {
 public:
  using Rank = typename Runner::Rank;  ///< a PlainRank with what the Runner notes

  PlainWalk(const Schedule& schedule, Runner& runner)
      : runner_(runner),
        row_(static_cast<std::size_t>(schedule.shape.microbatches)),
        ranks_(begin_ranks<Rank>(schedule)),
        stages_(list_plain_stages(schedule)),
        activations_(stages_.size() * row_, kAbsent),
        runnable_(ranks_.size()) {
    activations_.resize(activations_.size() + row_, 0);  // for stages that wait for nothing
    gradients_ = activations_;
  }

  /// Whether all ops run, and make each value once.
  bool run() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      wake(static_cast<std::int32_t>(rank));
      while (runnable_count_ > 0) {
        advance(runnable_[--runnable_count_]);
        if (!is_plain_) return false;
      }
    }
    return std::all_of(stages_.begin(), stages_.end(), has_run_all) &&
           std::all_of(ranks_.begin(), ranks_.end(),
                       [](const Rank& rank) { return rank.next == rank.end; });
  }

  std::vector<Rank>& ranks() { return ranks_; }
  const std::vector<PlainStage>& stages() const { return stages_; }
  /// Whether a stage's backward of a micro-batch was split.
  bool is_split(const PlainStage& stage, std::int32_t microbatch) const {
    return activations_[stage.own + static_cast<std::size_t>(microbatch)] == kReleasedByW;
  }

 private:
  void wake(std::int32_t rank) { runnable_[runnable_count_++] = rank; }

  void advance(std::int32_t number) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    for (; rank.next != rank.end; ++rank.next) {
      const Op& op = *rank.next;
      PlainStage* const stage = find_stage(op, number);
      const Exchange values = stage == nullptr ? Exchange{} : find_values(op, *stage);
      is_plain_ = values.made != nullptr;
      if (!is_plain_) return;
      if (*values.awaited < 0) {
        is_plain_ = is_missing(*values.awaited);
        *values.awaited = kAwaitedBy - number;
        return;
      }
      if (is_awaited(*values.made)) wake(static_cast<std::int32_t>(kAwaitedBy - *values.made));
      ++stage->count[static_cast<std::size_t>(op.kind)];
      const Nanos start = rank.start(*values.awaited + values.travel, values.travel);
      const Nanos end = runner_.run(op, start, *stage, rank);
      is_plain_ = end != kNotPlain;
      if (!is_plain_) return;
      *values.made = rank.free_from = end;
      if (op.kind != OpKind::kForward)
        activations_[stage->own + static_cast<std::size_t>(op.microbatch)] = released_by(op.kind);
    }
  }

  /// The stage of an op that is in its place; null if it is not.
  PlainStage* find_stage(const Op& op, std::int32_t rank) {
    if (static_cast<std::size_t>(op.stage) >= stages_.size()) return nullptr;
    PlainStage& stage = stages_[static_cast<std::size_t>(op.stage)];
    const bool is_in_place = stage.rank == rank && op.microbatch >= stage.first_microbatch &&
                             op.microbatch < stage.end_microbatch && op.slice == 0 &&
                             op.pairing == Pairing::kAlone;
    return is_in_place ? &stage : nullptr;
  }

  /// Nothing is made by an op of another kind, by one that runs for the second time, or before its
  /// rank has run what comes first.
  Exchange find_values(const Op& op, const PlainStage& stage) {
    const auto microbatch = static_cast<std::size_t>(op.microbatch);
    Nanos& activation = activations_[stage.own + microbatch];
    if (op.kind == OpKind::kForward) {
      if (!is_missing(activation)) return {};
      const Nanos travel = stage.receives_input ? runner_.activation_travel(op) : 0;
      return {&activations_[stage.input + microbatch], travel, &activation};
    }
    if (op.kind == OpKind::kWeightGrad)
      return {&no_wait_, 0, activation == kAwaitsW ? &end_of_weight_grad_ : nullptr};
    Nanos& gradient = gradients_[stage.own + microbatch];
    if (!gives_input_grad(op.kind) || activation < 0 || !is_missing(gradient)) return {};
    const Nanos travel = stage.receives_gradients ? runner_.gradient_travel(op) : 0;
    return {&gradients_[stage.reader + microbatch], travel, &gradient};
  }

  Runner& runner_;
  std::size_t row_;  ///< values of a stage
  std::vector<Rank> ranks_;
  std::vector<PlainStage> stages_;
  std::vector<Nanos> activations_;  ///< numbered as in PlainStage
  std::vector<Nanos> gradients_;
  Nanos no_wait_ = 0;
  Nanos end_of_weight_grad_ = kAbsent;
  std::vector<std::int32_t> runnable_;  ///< a stack; no rank waits for two values
  std::size_t runnable_count_ = 0;
  bool is_plain_ = true;
};

}  // namespace bubblescope::inline sim
