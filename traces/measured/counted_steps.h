// Counts the steps of ops that state none.
//
// In order of time, a rank runs 0F0 0B0 0F0 0B0: the n-th time that it runs an op is step n. Where
// some ops ran more often than others, because the recording lacks one or was cut, or because an
// evaluation has no backwards, counting each op by itself would shift all that follow by a step.
// A recording that begins within a step is counted from its end (step_orders.h). Else the ranks
// that ran all their ops equally often tell by their times which step an op is of: a micro-batch
// passes the stages one after another. If there are none, a rank does that has no micro-batch in
// flight between steps. If there is none either, or if the steps of a rank would go back in time, a
// step begins where an op runs again, or a forward after its backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// An op as it is counted.
struct CountedOp {
  std::string name;       ///< distinguishes it from the other ops of its rank and step
  std::string pass = {};  ///< is equal for a forward and its backward; else empty
  bool is_forward = false;
};

struct CountedSteps {
  std::vector<std::int64_t> step_of;  ///< [op]
  std::int64_t steps = 0;
  bool are_even = true;  ///< all ops ran equally often
};

/// Counts the steps of the ops of one rank, in order of time.
CountedSteps count_steps(const std::vector<CountedOp>& ops);

/// Returns the ops of a file whose ranks share a clock. Those that `counted` lists, by sorted
/// indices, get the steps that were counted. A message belongs to the step of the op before it if
/// it is sent, or else of the op after it.
std::vector<ObservedOp> with_counted_steps(std::vector<ObservedOp> ops,
                                           const std::vector<std::size_t>& counted);

}  // namespace bubblescope::traces
