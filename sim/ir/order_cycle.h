// The cycle of a schedule's order. Between warm-up and drain most schedules repeat the same ops for
// later micro-batches:
//
//   1F1B, rank 1 of 3, 6 micro-batches:    F0 | F1 B0 | F2 B1 | F3 B2 | F4 B3 | F5 B4 | B5
//   its cycle is one micro-batch long; without two cycles it is the order for 4 micro-batches:
//                                          F0 | F1 B0 | F2 B1 | F3 B2 | B3
//
// So a long step is a short one with cycles inserted, and what is known about the short one can be
// extended (sim/predict/predict_repeated.h). The cycle is found in the order itself, also that of
// a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::inline sim {

/// The part of a rank's order that repeats: every op in [begin, end) is followed, `length`
/// positions later, by the same op of a later micro-batch. The part ends at `end + length`.
struct RankCycle {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t length = 0;
};

/// The cycle of a whole schedule.
struct OrderCycle {
  std::int32_t microbatches = 1;  ///< of one cycle
  std::int64_t count = 0;         ///< cycles that can be removed while every rank keeps one
  std::vector<RankCycle> ranks;
};

/// The shortest cycle, in micro-batches, that every rank repeats in the middle of its order; empty
/// if there is none, or if the schedule has more than orders: posted lists, weight versions,
/// copies, after edges or several pipelines. Accepts any Schedule, however wrong its numbers are.
std::optional<OrderCycle> find_order_cycle(const Schedule& schedule);

/// The schedule without `count` of its cycles and with as many fewer micro-batches. `count` must
/// not exceed that of the cycle.
Schedule remove_cycles(const Schedule& schedule, const OrderCycle& cycle, std::int64_t count);

/// Whether a schedule is valid if it is valid without `count` of its cycles, at least two of which
/// remain (`shortened`): every op of a cycle must occur once for each of its micro-batches, and
/// those before a cycle must belong to earlier micro-batches than those after it.
bool keeps_validity(const Schedule& shortened, const OrderCycle& cycle);

}  // namespace bubblescope::inline sim
