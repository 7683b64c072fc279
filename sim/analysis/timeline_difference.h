// The difference of two timelines of the same work, op by op: predicted and measured, or before and
// after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope::inline sim {

/// A compute op that occurs in both timelines.
struct OpShift {
  std::int32_t rank = 0;
  Op op;
  Nanos start_shift = 0;     ///< start in B minus start in A, each relative to its step's start
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

/// Matches compute ops by rank, kind, stage, micro-batch and slice.
TimelineDifference compare_timelines(const Program& program_a, const Timeline& timeline_a,
                                     const Program& program_b, const Timeline& timeline_b);

/// A quantile of the absolute start shifts (95: at least 95 % are no larger); 0 without any.
Nanos compute_start_shift_quantile(const TimelineDifference& difference, std::size_t percent);

/// The first divergence: the earliest op whose start or duration differs by more than `tolerance`;
/// empty if there is none.
std::optional<OpShift> find_first_divergence(const TimelineDifference& difference, Nanos tolerance);

}  // namespace bubblescope::inline sim
