// Better places for receives: what removes a deadlock or the wait behind another message.
//
//   rank 0: post 0RECV_B0 before 0SEND_F1
//   removes the deadlock; then the step takes 9 ms, as without any waiting for messages
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/ir/lower.h"
#include "sim/ir/units.h"
#include "sim/model/cost_model.h"

namespace bubblescope {

/// A receive that gets another place.
struct MovedReceive {
  std::int32_t rank = 0;
  Op receive;
  Op before;  ///< what it is now posted before: the next op or send
};

struct ReceiveSuggestion {
  std::vector<RankOrder> posted;  ///< the lists to run instead; only receives have moved
  std::vector<MovedReceive> moves;
  std::optional<Nanos> makespan_as_posted;  ///< nothing: a deadlock
  Nanos makespan = 0;                       ///< of the suggested lists
  Nanos dataflow_makespan = 0;              ///< no posting is faster
};

/// The fastest of a few orders of the receives, if it is better than the posted one: a deadlock is
/// always removed. Nothing where nothing is gained, where the compute ops themselves wait for each
/// other, and for kDataflow, which posts nothing. Throws what lower() throws.
std::optional<ReceiveSuggestion> suggest_receives(const ValidSchedule& schedule,
                                                  const LowerOptions& options,
                                                  const CostModel& costs);

/// One line per move, then what is gained.
std::string to_string(const ReceiveSuggestion& suggestion);

}  // namespace bubblescope
