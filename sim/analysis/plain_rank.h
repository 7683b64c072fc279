// A rank of a plain step while its order is walked, and the states of the values that ops exchange.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/analysis/plain_stages.h"
#include "sim/ir/schedule.h"
#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// How far a rank has come.
struct PlainRank {
  const Op* begin = nullptr;
  const Op* next = nullptr;
  const Op* end = nullptr;
  Nanos free_from = 0;  ///< the end of its last op
  std::optional<Nanos> first_start;
  Nanos communication = 0;
  Nanos dependency = 0;

  /// Returns when its next op starts: when the rank is free and the value that the op waits for is
  /// there. Before that, the rank has waited for the message, and before the message for the op
  /// that sends it.
  Nanos start(Nanos ready, Nanos travel) {
    const Nanos start = std::max(free_from, ready);
    const Nanos gap = start - free_from;
    if (!first_start) {
      first_start = start;
    } else if (gap > 0) {
      communication += std::min(gap, travel);
      dependency += gap - std::min(gap, travel);
    }
    return start;
  }
};

/// The ranks of a schedule before their first ops.
template <class Rank>
std::vector<Rank> begin_ranks(const Schedule& schedule) {
  std::vector<Rank> ranks(schedule.order.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].begin = ranks[rank].next = schedule.order[rank].data();
    ranks[rank].end = ranks[rank].next + schedule.order[rank].size();
  }
  return ranks;
}

/// The end of the op that makes a value, or a state below 0.
///   activation  absent or awaited -> end of F -> released by B, or by I and then W
///   gradient    absent or awaited -> end of B or I
inline constexpr Nanos kAbsent = -1;
inline constexpr Nanos kReleasedByB = -2;
inline constexpr Nanos kAwaitsW = -3;      ///< I has run, and W has not
inline constexpr Nanos kReleasedByW = -4;  ///< I and W have run
inline constexpr Nanos kAwaitedBy = -16;   ///< a rank waits for the value: -16 minus its number

/// Returned for an op that cannot be run here, so that the step is left to the whole way.
inline constexpr Nanos kNotPlain = -1;

inline bool is_awaited(Nanos state) { return state <= kAwaitedBy; }
inline bool is_missing(Nanos state) { return state == kAbsent || is_awaited(state); }

/// The state of an activation after a backward or a part of it.
inline Nanos released_by(OpKind kind) {
  if (kind == OpKind::kInputGrad) return kAwaitsW;
  return kind == OpKind::kWeightGrad ? kReleasedByW : kReleasedByB;
}

/// The values that an op waits for and makes.
struct Exchange {
  Nanos* awaited = nullptr;
  Nanos travel = 0;  ///< how long the awaited value is on its way
  Nanos* made = nullptr;
};

/// Whether every micro-batch of a stage has run forward and backward, once.
inline bool has_run_all(const PlainStage& stage) {
  const auto& [forwards, backwards, input_grads, weight_grads] = stage.count;
  return forwards == stage.microbatches() && backwards + input_grads == forwards &&
         weight_grads == input_grads;
}

}  // namespace bubblescope::inline sim
