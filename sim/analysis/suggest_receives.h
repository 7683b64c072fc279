// Suggests better positions for receives, which remove a deadlock or a wait behind another message.
//
//   rank 0: post 0RECV_B0 before 0SEND_F1
//   removes the deadlock; then the step takes 9 ms, the same as dataflow
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/moved_receives.h"
#include "sim/ir/lower.h"
#include "sim/ir/units.h"
#include "sim/model/cost_model.h"

namespace bubblescope::inline sim {

struct ReceiveSuggestion {
  std::vector<RankOrder> posted;            ///< the lists to run instead; only receives have moved
  std::vector<MovedReceive> moves;          ///< what makes them of the lists as they are
  std::optional<Nanos> makespan_as_posted;  ///< empty: a deadlock
  Nanos makespan = 0;                       ///< with the suggested lists
  Nanos dataflow_makespan = 0;              ///< a bound: no posting is faster
};

/// The fastest of a few orders of the receives, if it improves on the posted one; a deadlock is
/// always removed. Empty if there is no improvement, if the compute ops themselves deadlock, and
/// for kDataflow, which posts nothing. Throws as lower() does.
std::optional<ReceiveSuggestion> suggest_receives(const ValidSchedule& schedule,
                                                  const LowerOptions& options,
                                                  const CostModel& costs);

/// Returns one line per move, then the gain.
std::string to_string(const ReceiveSuggestion& suggestion);

}  // namespace bubblescope::inline sim
