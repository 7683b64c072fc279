// The steady state of a simulated step: a time in which everything happens again one period later,
// for later micro-batches, on every rank and on every link.
//
//   start                  cut - period      cut                                      end
//     |  warm-up  | ... as before ...  |  period  |  ... as before ... |  drain         |
//
// If also everything that starts after the cut, and in the period before it, waits only for what is
// in the steady state or later, then the step stays right when copies of the period are inserted at
// the cut: each instruction still starts when the last of those that it waits for has ended. That
// is all that defines the times of a Program, so they are those of the longer step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/analysis/repeats.h"
#include "sim/ir/order_cycle.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope::inline sim {

struct SteadyState {
  Nanos cut = 0;                  ///< nothing that starts later is in the period
  Nanos period = 0;               ///< always positive
  std::int64_t cycles = 1;        ///< of the order, in a period
  std::int32_t microbatches = 1;  ///< in a period
  /// Per instruction: the same one of a period later. It exists for all that start in the steady
  /// state before the cut.
  std::vector<InstructionId> next;

  bool is_in_period(Nanos start) const { return start >= cut - period && start < cut; }
};

/// Finds the earliest cut. `schedule` has few cycles, where `cycle` says, and `removed` of the
/// longer schedule's are missing. Empty where the step is too short to be steady, or where a rank
/// runs nothing before the period or after it.
std::optional<SteadyState> find_steady_state(const ValidSchedule& schedule, const Program& program,
                                             const Timeline& timeline, const OrderCycle& cycle,
                                             std::int64_t removed);

}  // namespace bubblescope::inline sim
