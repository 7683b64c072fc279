// The send budget: the number of sends that a rank may have outstanding. A send is outstanding from
// the moment it is posted until its rank has waited for it; until then its output stays in memory.
//
//   0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0WAIT_SEND_F0 0RECV_B1 0B1 0WAIT_SEND_F1   no limit
//   0F0 0SEND_F0 0F1 0WAIT_SEND_F0 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 0WAIT_SEND_F1   a budget of 1
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/ir/lower.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope::inline sim {

/// A budget that no rank reaches: waits stay where PyTorch puts them without one.
inline constexpr std::int32_t kUnlimitedSends = std::numeric_limits<std::int32_t>::max();

/// Returns "none", or a number such as "4".
std::string budget_text(std::int32_t budget);

/// PyTorch's _add_wait_send_budget: where a rank would post one send more than `budget`, it waits
/// for another one first, forwards and backwards alike: for the oldest whose receive must have been
/// posted by then, or else for the oldest for which it can wait without a deadlock. `lists` have a
/// WAIT_SEND for each SEND. O(sends * budget * ranks) if waits rarely find no receive, else less.
///
/// Throws Error (Fault::kProblem) where no outstanding send can be waited for.
std::vector<RankOrder> limit_sends(const ValidSchedule& schedule,
                                   const std::vector<RankOrder>& lists, std::int32_t budget);

/// The posted lists of a runtime with this budget. Waits that the schedule posts itself stay, or
/// are moved forward where they are too late.
std::vector<RankOrder> make_awaited_lists(const ValidSchedule& schedule, ReceivePosting posting,
                                          std::int32_t budget);

}  // namespace bubblescope::inline sim
