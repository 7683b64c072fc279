// Runs the ops of a plain step whose micro-batches may take different times (plain_walk.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "sim/analysis/plain_memory.h"
#include "sim/analysis/plain_rank.h"
#include "sim/analysis/plain_times.h"
#include "sim/analysis/plain_walk.h"
#include "sim/ir/range.h"

namespace bubblescope::inline sim {

/// Notes the end of every op and what ranks hold. Refuses ops that take no time, and those from
/// which a sum may leave its range. Refers to costs and memory, which must outlive it.
class ListedRunner {
 public:
  struct Rank : PlainRank {
    Nanos* ends = nullptr;  ///< [op]
    PlainHeld held;
    Bytes bytes = 0;  ///< that it holds, and the most
    Bytes max_bytes = 0;
    std::optional<std::size_t> peak_op;  ///< the first that holds the most chunks
    std::array<Nanos, kPlainKinds> busy{};
  };

  ListedRunner(const Schedule& schedule, const CostModel& costs, const MemoryModel& memory)
      : times_(schedule, costs),
        memory_(memory),
        has_bytes_(!memory.by_microbatch.empty() || !memory.activation_bytes.empty()),
        amounts_(find_plain_amounts(memory)),
        first_ops_(schedule.rank_of_stage.size()),
        time_left_(kMaxNanos / (2 * Nanos{schedule.shape.ranks})) {}

  Nanos activation_travel(const Op& op) {
    return spend(times_.activation(op.stage - 1, op.microbatch));
  }
  Nanos gradient_travel(const Op& op) {
    return spend(times_.gradient(op.stage + 1, op.microbatch));
  }

  /// Runs an op, and returns its end or kNotPlain.
  Nanos run(const Op& op, Nanos start, const PlainStage& stage, Rank& rank) {
    const auto kind = static_cast<std::size_t>(op.kind);
    const auto at = static_cast<std::size_t>(&op - rank.begin);
    const Nanos duration = spend(times_.of(op));
    if (duration <= 0 || time_left_ == 0 || !hold(op, at, rank)) return kNotPlain;
    if (stage.count[kind] == 1) first_ops_[static_cast<std::size_t>(op.stage)][kind] = at;
    rank.busy[kind] += duration;
    return rank.ends[at] = start + duration;
  }

  const PlainTimes& times() const { return times_; }
  /// The place of a stage's first op of a kind that it has.
  std::size_t first_op(std::size_t stage, std::size_t kind) const {
    return first_ops_[stage][kind];
  }

 private:
  /// Takes a time from what all together may take. Nothing is left after one that is too long.
  Nanos spend(Nanos time) {
    time_left_ = time < 0 || time > time_left_ ? 0 : time_left_ - time;
    return time;
  }

  /// Adds what an op allocates or releases. False if it may be too much to count.
  bool hold(const Op& op, std::size_t at, Rank& rank) {
    if (rank.held.add(amounts_[static_cast<std::size_t>(op.kind)])) rank.peak_op = at;
    if (!has_bytes_) return true;
    rank.bytes += bytes_of(op);
    rank.max_bytes = std::max(rank.max_bytes, rank.bytes);
    return rank.bytes > -kMaxBytes / 2 && rank.bytes < kMaxBytes / 2;
  }

  Bytes bytes_of(const Op& op) const {
    if (!memory_.by_microbatch.empty()) return memory_.by_microbatch(op).activations(op.kind);
    return memory_.activation_bytes[static_cast<std::size_t>(op.stage)](op.kind);
  }

  PlainTimes times_;
  const MemoryModel& memory_;
  bool has_bytes_;
  std::array<PlainAmount, kPlainKinds> amounts_;
  std::vector<std::array<std::size_t, kPlainKinds>> first_ops_;  ///< [stage]
  Nanos time_left_;
};

}  // namespace bubblescope::inline sim
