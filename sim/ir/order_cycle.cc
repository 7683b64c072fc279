// Compares a rank's order with itself, shifted by a number of micro-batches.
#include "sim/ir/order_cycle.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace bubblescope::inline sim {

namespace {

/// Orders with copies, messages, versions or edges are left to the whole run.
bool has_only_orders(const Schedule& schedule) {
  return schedule.pipelines == 1 && schedule.posted.empty() && schedule.weights.empty() &&
         schedule.after.empty() && schedule.graph.is_chain() && schedule.turns_of_stage.empty() &&
         schedule.offload_target_of_rank.empty() && !schedule.forward_only &&
         schedule.shape.ranks > 0 && schedule.shape.microbatches > 0 && schedule.shape.slices > 0 &&
         schedule.fused_forwards > 0 &&
         schedule.order.size() == static_cast<std::size_t>(schedule.shape.ranks);
}

bool is_later(const Op& op, const Op& later, std::int32_t microbatches) {
  return op.stage == later.stage &&
         std::int64_t{op.microbatch} + microbatches == later.microbatch &&
         op.slice == later.slice && op.kind == later.kind && op.pairing == later.pairing;
}

/// Compares many ops at once, as words without branches, because long orders are compared as a
/// whole. Numbers may wrap around: what is left of a schedule without its cycles is checked op by
/// op.
class LaterOps {
 public:
  static constexpr std::size_t kCount = 64;

  explicit LaterOps(std::int32_t microbatches) {
    for (std::size_t at = 0; at < kCount; ++at)
      difference_[3 * at + kMicrobatch] = static_cast<std::uint32_t>(microbatches);
  }

  /// Whether kCount ops are those of so many later micro-batches.
  bool follow(const Op* ops, const Op* later) const {
    Words words;
    Words later_words;
    std::memcpy(words.data(), ops, sizeof words);
    std::memcpy(later_words.data(), later, sizeof later_words);
    std::uint32_t other = 0;
    for (std::size_t at = 0; at < words.size(); ++at)
      other |= later_words[at] - words[at] - difference_[at];
    return other == 0;
  }

 private:
  using Words = std::array<std::uint32_t, 3 * kCount>;
  static constexpr std::size_t kMicrobatch = offsetof(Op, microbatch) / sizeof(std::uint32_t);
  static_assert(sizeof(Words) == kCount * sizeof(Op));

  Words difference_{};
};

/// Whether `microbatches` may be the length of a cycle: replicas of a stage take turns, and fused
/// forwards stay together.
bool may_repeat_every(const Schedule& schedule, std::int32_t microbatches) {
  const std::int64_t forwards = std::int64_t{microbatches} * schedule.shape.slices;
  return forwards % schedule.fused_forwards == 0 &&
         std::all_of(
             schedule.replicas_of_stage.begin(), schedule.replicas_of_stage.end(),
             [=](std::int32_t replicas) { return replicas > 0 && microbatches % replicas == 0; });
}

/// The ops of a rank in a cycle; 0 if its ops cannot be divided like that.
std::size_t count_ops(const Schedule& schedule, const RankOrder& ops, std::int32_t microbatches) {
  const auto all = static_cast<std::size_t>(schedule.shape.microbatches);
  const std::size_t in_cycles = ops.size() * static_cast<std::size_t>(microbatches);
  return in_cycles % all == 0 ? in_cycles / all : 0;
}

/// Whether one cycle in the middle of a rank's order is followed by the next.
bool repeats_in_the_middle(const RankOrder& ops, std::size_t length, std::int32_t microbatches) {
  if (length == 0 || 4 * length > ops.size()) return false;
  const std::size_t begin = ops.size() / 2 - length;
  for (std::size_t at = begin; at < begin + length; ++at)
    if (!is_later(ops[at], ops[at + length], microbatches)) return false;
  return true;
}

RankCycle extend(const RankOrder& ops, std::size_t length, std::int32_t microbatches) {
  RankCycle cycle{ops.size() / 2 - length, ops.size() / 2, length};
  const LaterOps blocks(microbatches);
  constexpr std::size_t kBlock = LaterOps::kCount;
  const Op* const first = ops.data();
  const std::size_t last = ops.size() - length;
  while (cycle.begin >= kBlock &&
         blocks.follow(first + cycle.begin - kBlock, first + cycle.begin - kBlock + length))
    cycle.begin -= kBlock;
  while (cycle.begin > 0 &&
         is_later(ops[cycle.begin - 1], ops[cycle.begin - 1 + length], microbatches))
    --cycle.begin;
  while (cycle.end + kBlock <= last && blocks.follow(first + cycle.end, first + cycle.end + length))
    cycle.end += kBlock;
  while (cycle.end < last && is_later(ops[cycle.end], ops[cycle.end + length], microbatches))
    ++cycle.end;
  return cycle;
}

/// Looks at the first rank for each length, because nearly every wrong one fails there.
std::optional<std::int32_t> find_length(const Schedule& schedule) {
  const std::int32_t longest = schedule.shape.microbatches / 4;
  const auto repeats = [&](const RankOrder& ops, std::int32_t microbatches) {
    return repeats_in_the_middle(ops, count_ops(schedule, ops, microbatches), microbatches);
  };
  for (std::int32_t microbatches = 1; microbatches <= longest; ++microbatches) {
    if (!may_repeat_every(schedule, microbatches)) continue;
    if (std::all_of(schedule.order.begin(), schedule.order.end(),
                    [&](const RankOrder& ops) { return repeats(ops, microbatches); }))
      return microbatches;
  }
  return {};
}

/// Copies everything but the orders and the number of micro-batches.
Schedule copy_frame(const Schedule& schedule) {
  Schedule frame;
  frame.name = schedule.name;
  frame.shape = schedule.shape;
  frame.rank_of_stage = schedule.rank_of_stage;
  frame.replicas_of_stage = schedule.replicas_of_stage;
  frame.fused_forwards = schedule.fused_forwards;
  frame.recompute_of_stage = schedule.recompute_of_stage;
  frame.side_stages = schedule.side_stages;
  return frame;
}

}  // namespace

std::optional<OrderCycle> find_order_cycle(const Schedule& schedule) {
  if (!has_only_orders(schedule)) return {};
  const std::optional<std::int32_t> microbatches = find_length(schedule);
  if (!microbatches) return {};
  OrderCycle cycle{*microbatches, schedule.shape.microbatches, {}};
  for (const RankOrder& ops : schedule.order) {
    const RankCycle of_rank = extend(ops, count_ops(schedule, ops, *microbatches), *microbatches);
    const auto count = static_cast<std::int64_t>((of_rank.end - of_rank.begin) / of_rank.length);
    cycle.count = std::min(cycle.count, count);
    cycle.ranks.push_back(of_rank);
  }
  return cycle;
}

Schedule remove_cycles(const Schedule& schedule, const OrderCycle& cycle, std::int64_t count) {
  Schedule shortened = copy_frame(schedule);
  const auto removed = static_cast<std::int32_t>(count * cycle.microbatches);
  shortened.shape.microbatches -= removed;
  shortened.order.reserve(schedule.order.size());
  for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
    const RankOrder& ops = schedule.order[rank];
    const auto [begin, end, length] = cycle.ranks[rank];
    const std::size_t next = begin + static_cast<std::size_t>(count) * length;
    RankOrder& kept = shortened.order.emplace_back();
    kept.reserve(ops.size() - (next - begin));
    kept.insert(kept.end(), ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(begin));
    for (std::size_t at = next; at < ops.size(); ++at) {
      kept.push_back(ops[at]);
      kept.back().microbatch -= removed;
    }
  }
  return shortened;
}

namespace {

/// The micro-batch of each op of a cycle, by its kind, stage, slice and its place in the cycle.
class CycleOps {
 public:
  CycleOps(const Schedule& shortened, std::int32_t microbatches)
      : slices_(static_cast<std::size_t>(shortened.shape.slices)),
        microbatches_(static_cast<std::size_t>(microbatches)),
        first_(
            static_cast<std::size_t>(shortened.stages()) * slices_ * kComputeKinds * microbatches_,
            kNone) {}

  /// False if another op of the cycle has this place.
  bool add(const Op& op) {
    std::int32_t& first = first_[index(op)];
    if (first != kNone) return false;
    first = op.microbatch;
    return true;
  }

  /// Whether the cycles begin with an earlier micro-batch than this op's, or with this one.
  bool begins_by(const Op& op) const {
    const std::int32_t first = first_[index(op)];
    return first != kNone && first <= op.microbatch;
  }
  /// Whether they begin with a later one.
  bool begins_after(const Op& op) const {
    const std::int32_t first = first_[index(op)];
    return first != kNone && first > op.microbatch;
  }

 private:
  static constexpr std::int32_t kNone = -1;

  std::size_t index(const Op& op) const {
    const std::size_t op_class =
        (static_cast<std::size_t>(op.stage) * slices_ + static_cast<std::size_t>(op.slice)) *
            kComputeKinds +
        static_cast<std::size_t>(op.kind);
    return op_class * microbatches_ + static_cast<std::size_t>(op.microbatch) % microbatches_;
  }

  std::size_t slices_;
  std::size_t microbatches_;
  std::vector<std::int32_t> first_;
};

}  // namespace

bool keeps_validity(const Schedule& shortened, const OrderCycle& cycle) {
  CycleOps cycle_ops(shortened, cycle.microbatches);
  for (std::size_t rank = 0; rank < shortened.order.size(); ++rank) {
    const auto [begin, end, length] = cycle.ranks[rank];
    const RankOrder& ops = shortened.order[rank];
    for (std::size_t at = begin + length; at < begin + 2 * length; ++at)
      if (!is_compute(ops[at].kind) || !cycle_ops.add(ops[at])) return false;
  }
  for (std::size_t rank = 0; rank < shortened.order.size(); ++rank) {
    const RankOrder& ops = shortened.order[rank];
    const std::size_t cut = cycle.ranks[rank].begin + cycle.ranks[rank].length;
    for (std::size_t at = 0; at < ops.size(); ++at) {
      if (!is_compute(ops[at].kind)) return false;
      if (at < cut ? !cycle_ops.begins_after(ops[at]) : !cycle_ops.begins_by(ops[at])) return false;
    }
  }
  return true;
}

}  // namespace bubblescope::inline sim
