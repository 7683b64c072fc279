// Checks the ops: first each op alone, then all ops of each (stage, micro-batch, slice).
#include "sim/ir/validate.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/ir/depend.h"
#include "sim/ir/plain_ops.h"

namespace bubblescope::inline sim {

namespace {

/// The position of the op that makes a value, in one word; `full` marks a full backward.
struct Place {
  std::uint32_t position : 30 = 0;
  std::uint32_t is_present : 1 = 0;
  std::uint32_t full : 1 = 0;
};

std::int32_t position_of(const Place& place) { return static_cast<std::int32_t>(place.position); }

std::string range_text(std::int32_t count) { return "0.." + std::to_string(count - 1); }

class OpChecks {
 public:
  explicit OpChecks(const Schedule& schedule)
      : schedule_(schedule),
        index_(schedule),
        may_recompute_(!schedule.recompute_of_stage.empty()) {}

  Problems run() && {
    if (are_plainly_valid(schedule_)) return {};
    places_.resize(index_.size());
    for (std::int32_t rank = 0; rank < schedule_.shape.ranks; ++rank) {
      const RankOrder& ops = schedule_.order[rank];
      for (std::int32_t at = 0; at < static_cast<std::int32_t>(ops.size()); ++at) {
        check_pairing(rank, at);
        check_fused(rank, at);
        if (check_op(rank, at)) record(rank, at);
      }
    }
    for (std::int32_t stage = 0; stage < schedule_.stages(); ++stage)
      for (std::int32_t microbatch = 0; microbatch < schedule_.shape.microbatches; ++microbatch)
        if (belongs(stage, microbatch)) check_microbatch(stage, microbatch);
    return sort_by_place(std::move(problems_));
  }

 private:
  void report(std::optional<std::int32_t> rank, std::optional<std::int32_t> position,
              std::string what, std::string remedy = {}) {
    problems_.push_back({rank, position, std::move(what), std::move(remedy)});
  }

  bool belongs(std::int32_t stage, std::int32_t microbatch) const {
    return schedule_.pipelines == 1 ||
           stage / schedule_.stages_per_pipeline() == schedule_.pipeline_of_microbatch(microbatch);
  }

  void check_pairing(std::int32_t rank, std::int32_t at) {
    const RankOrder& ops = schedule_.order[rank];
    const bool second = ops[at].pairing == Pairing::kSecond;
    const auto has_pairing = [&](std::int32_t place, Pairing pairing) {
      return place >= 0 && place < static_cast<std::int32_t>(ops.size()) &&
             ops[place].pairing == pairing;
    };
    const bool lacks_second =
        ops[at].pairing == Pairing::kFirst && !has_pairing(at + 1, Pairing::kSecond);
    if (lacks_second || (second && !has_pairing(at - 1, Pairing::kFirst)))
      report(rank, at, to_string(ops[at]) + " is half of an overlapped pair without the other",
             "a pair is a forward and, right after it, a B or I");
    else if (second && (ops[at - 1].kind != OpKind::kForward || !gives_input_grad(ops[at].kind)))
      report(rank, at, to_string(ops[at]) + " is paired with " + to_string(ops[at - 1]),
             "a pair is a forward and then a B or I");
    else if (second && ops[at].stage == ops[at - 1].stage &&
             ops[at].microbatch == ops[at - 1].microbatch)
      report(rank, at, to_string(ops[at]) + " needs the forward that it is paired with",
             "run them one after the other");
  }

  /// Fused forwards must be adjacent and in order.
  void check_fused(std::int32_t rank, std::int32_t at) {
    const RankOrder& ops = schedule_.order[rank];
    const std::int64_t fused = schedule_.fused_forwards;
    if (fused == 1 || ops[at].kind != OpKind::kForward) return;
    const std::int64_t index = schedule_.forward_index(ops[at]);
    if (index % fused == 0) return;
    const bool behind = at > 0 && ops[at - 1].kind == OpKind::kForward &&
                        ops[at - 1].stage == ops[at].stage &&
                        schedule_.forward_index(ops[at - 1]) == index - 1;
    if (!behind)
      report(rank, at,
             to_string(ops[at]) + " must directly follow the previous forward, with which it " +
                 "is fused (" + std::to_string(fused) + " at a time)");
  }

  /// Checks an op without regard to the others; false if it must not be recorded.
  bool check_op(std::int32_t rank, std::int32_t at) {
    const Op& op = schedule_.order[rank][at];
    const Shape& shape = schedule_.shape;
    if (!occurs_in_order(op.kind)) {
      report(rank, at, to_string(op) + " is not a compute op",
             "messages belong in the posted lists");
    } else if (is_copy(op.kind) && schedule_.offload_target_of_rank.empty()) {
      report(rank, at, to_string(op) + " has no offload target",
             "name the rank (or host) that stores what each rank evicts");
    } else if (op.stage < 0 || op.stage >= schedule_.stages()) {
      report(rank, at,
             to_string(op) + " is on stage " + std::to_string(op.stage) + ", stages are " +
                 range_text(schedule_.stages()));
    } else if (op.microbatch < 0 || op.microbatch >= shape.microbatches) {
      report(rank, at,
             to_string(op) + " belongs to micro-batch " + std::to_string(op.microbatch) +
                 ", micro-batches are " + range_text(shape.microbatches));
    } else if (op.slice < 0 || op.slice >= shape.slices) {
      report(rank, at,
             to_string(op) + " belongs to slice " + std::to_string(op.slice) + ", slices are " +
                 range_text(shape.slices));
    } else if (schedule_.rank_of(op.stage, op.microbatch) != rank) {
      report(rank, at,
             to_string(op) + " is on rank " + std::to_string(rank) + ", but stage " +
                 std::to_string(op.stage) + " is on rank " +
                 std::to_string(schedule_.rank_of(op.stage, op.microbatch)),
             "move it there");
    } else if (!belongs(op.stage, op.microbatch)) {
      report(rank, at,
             to_string(op) + ": micro-batch " + std::to_string(op.microbatch) +
                 " runs through the other pipeline's stages");
    } else if (schedule_.forward_only && op.kind != OpKind::kForward) {
      report(rank, at, to_string(op) + " is in a forward-only schedule", "remove it");
    } else {
      return true;
    }
    return false;
  }

  void record(std::int32_t rank, std::int32_t at) {
    const Op& op = schedule_.order[rank][at];
    Place& place = places_[index_(op)];
    const bool full = op.kind == OpKind::kBackward;
    may_recompute_ = may_recompute_ || op.kind == OpKind::kRecompute;
    has_copies_ = has_copies_ || is_copy(op.kind);
    if (!place.is_present) {
      place = {static_cast<std::uint32_t>(at) & 0x3fffffffu, 1u, full ? 1u : 0u};
    } else if ((place.full != 0) == full) {
      report(rank, at, to_string(op) + " runs twice",
             "the first is at position " + std::to_string(position_of(place)) + ", remove one");
    } else {
      report(rank, at,
             "stage " + std::to_string(op.stage) + ", micro-batch " +
                 std::to_string(op.microbatch) + " has B as well as I",
             "keep one of them");
    }
  }

  const Place& place(ValueKind value_kind, std::int32_t stage, std::int32_t microbatch,
                     std::int16_t slice) const {
    return places_[index_(Value{value_kind, stage, microbatch, slice})];
  }

  void check_microbatch(std::int32_t stage, std::int32_t microbatch) {
    const std::int32_t rank = schedule_.rank_of(stage, microbatch);
    for (std::int16_t slice = 0; slice < schedule_.shape.slices; ++slice) {
      const Op op{stage, microbatch, slice};
      const Place& forward = place(ValueKind::kActivation, stage, microbatch, slice);
      const Place& gradient = place(ValueKind::kGradient, stage, microbatch, slice);
      const Place& weights = place(ValueKind::kWeightGradient, stage, microbatch, slice);
      if (!forward.is_present)
        report(rank, {}, to_string(op) + " is missing", "add it to this rank");
      if (schedule_.forward_only) continue;
      check_backward(rank, op, gradient, weights);
      if (may_recompute_) check_recompute(rank, op, forward, gradient);
      if (has_copies_) check_copies(rank, op, forward, gradient);
      if (forward.is_present && gradient.is_present && gradient.position < forward.position)
        report(rank, position_of(gradient),
               text(op, gradient) + " runs before its forward " + to_string(op), "move it after");
    }
  }

  static std::string text(Op op, OpKind kind) {
    op.kind = kind;
    return to_string(op);
  }
  static std::string text(const Op& op, const Place& gradient) {
    return text(op, gradient.full ? OpKind::kBackward : OpKind::kInputGrad);
  }

  void check_backward(std::int32_t rank, const Op& op, const Place& gradient,
                      const Place& weights) {
    const auto weight_text = [&] { return text(op, OpKind::kWeightGrad); };
    if (!gradient.is_present && !weights.is_present)
      report(rank, {}, text(op, OpKind::kBackward) + " is missing, and so are I and W",
             "add B, or I and W");
    else if (!gradient.is_present)
      report(rank, position_of(weights), weight_text() + " has no I",
             "add " + text(op, OpKind::kInputGrad) + " before it");
    else if (gradient.full && weights.is_present)
      report(rank, position_of(weights),
             weight_text() + " repeats the work of " + text(op, gradient),
             "write I instead of B, or remove W");
    else if (!gradient.full && !weights.is_present)
      report(rank, {}, weight_text() + " is missing", "add it after " + text(op, gradient));
    else if (weights.is_present && weights.position < gradient.position)
      report(rank, position_of(weights), weight_text() + " runs before its " + text(op, gradient),
             "move it after");
  }

  void check_recompute(std::int32_t rank, const Op& op, const Place& forward,
                       const Place& gradient) {
    const Place& recomputed = place(ValueKind::kRecomputed, op.stage, op.microbatch, op.slice);
    const auto recomputed_text = [&] { return text(op, OpKind::kRecompute); };
    const bool planned = schedule_.recompute(op.stage) != Recompute::kNone;
    if (recomputed.is_present && !planned)
      report(rank, position_of(recomputed),
             recomputed_text() + " is on stage " + std::to_string(op.stage) +
                 ", which does not recompute",
             "remove it, or let the stage recompute");
    if (!recomputed.is_present && planned && !schedule_.recompute_of_stage.empty())
      report(
          rank, {},
          recomputed_text() + " is missing, for stage " + std::to_string(op.stage) + " recomputes",
          "add it before the backward");
    if (!recomputed.is_present) return;
    if (forward.is_present && recomputed.position < forward.position)
      report(rank, position_of(recomputed), recomputed_text() + " runs before its forward",
             "move it after");
    if (gradient.is_present && gradient.position < recomputed.position)
      report(rank, position_of(recomputed),
             recomputed_text() + " runs after its backward, which needs it", "move it before");
  }

  /// The order must be: forward, EVICT, LOAD, then the op that uses the activations.
  void check_copies(std::int32_t rank, const Op& op, const Place& forward, const Place& gradient) {
    const Place& evict = place(ValueKind::kEvicted, op.stage, op.microbatch, op.slice);
    const Place& load = place(ValueKind::kLoaded, op.stage, op.microbatch, op.slice);
    const Place& recomputed = place(ValueKind::kRecomputed, op.stage, op.microbatch, op.slice);
    const std::string evict_text = text(op, OpKind::kEvict);
    const std::string load_text = text(op, OpKind::kLoad);
    if (evict.is_present && !load.is_present)
      report(rank, position_of(evict), evict_text + " is never loaded back", "add " + load_text);
    if (load.is_present && !evict.is_present)
      report(rank, position_of(load), load_text + " loads what was never evicted", "remove it");
    if (evict.is_present && forward.is_present && evict.position < forward.position)
      report(rank, position_of(evict), evict_text + " runs before its forward", "move it after");
    if (evict.is_present && load.is_present && load.position < evict.position)
      report(rank, position_of(load), load_text + " runs before " + evict_text, "move it after");
    const Place& user = recomputed.is_present ? recomputed : gradient;
    if (load.is_present && user.is_present && user.position < load.position)
      report(rank, position_of(load),
             load_text + " runs after " +
                 (recomputed.is_present ? text(op, OpKind::kRecompute) : text(op, gradient)) +
                 ", which needs it",
             "move it before");
  }

  const Schedule& schedule_;
  ValueIndex index_;
  std::vector<Place> places_;
  bool may_recompute_;  ///< whether the order has an R, or a stage should have
  bool has_copies_ = false;
  Problems problems_;
};

}  // namespace

Problems sort_by_place(Problems problems) {
  std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.rank, a.position) < std::tie(b.rank, b.position);
  });
  return problems;
}

Problems validate_ops(const Schedule& schedule) {
  Problems problems = validate_shape(schedule);
  if (problems.empty()) problems = OpChecks(schedule).run();
  if (problems.empty()) problems = validate_weights(schedule);
  if (problems.empty()) problems = validate_after(schedule);
  return problems;
}

}  // namespace bubblescope::inline sim
