// Two timelines of the same work, op by op: predicted and measured, before and after.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope {

/// A compute op that both timelines have.
struct OpShift {
  std::int32_t rank = 0;
  Op op;
  Nanos start_shift = 0;     ///< start in B minus start in A, each from its own step's start
  Nanos duration_shift = 0;  ///< duration in B minus duration in A
  Nanos start = 0;           ///< start in A
};

struct RankedOp {
  std::int32_t rank = 0;
  Op op;
};

struct TimelineDifference {
  std::vector<OpShift> shifts;  ///< in order of their start in A
  std::vector<RankedOp> only_in_a;
  std::vector<RankedOp> only_in_b;
  Nanos makespan_a = 0;
  Nanos makespan_b = 0;
};

/// Compute ops are matched by rank, kind, stage, micro-batch and slice.
TimelineDifference compare_timelines(const Program& program_a, const Timeline& timeline_a,
                                     const Program& program_b, const Timeline& timeline_b);

/// The size of start shifts at a quantile in 0..1 (0.95: all but a twentieth are smaller).
Nanos start_shift_quantile(const TimelineDifference& difference, double quantile);

/// The earliest op whose start or duration differs by more than `tolerance`; empty: none does.
std::optional<OpShift> first_parting(const TimelineDifference& difference, Nanos tolerance);

}  // namespace bubblescope
