// Alternative positions for posted receives.
#pragma once

#include <vector>

#include "sim/ir/posted_steps.h"
#include "sim/ir/timeline.h"

namespace bubblescope::inline sim {

/// The time at which a receive is posted, within the freedom that the order of all messages leaves.
enum class ReceiveTiming : std::uint8_t {
  kLast,         ///< before the op that needs it, or before a send that leaves later
  kWhenLeft,     ///< also before the first op that starts after the message has left
  kWhenArrived,  ///< also before the first op that starts after the message has arrived
};

/// Posted lists in which every rank has its sends and receives in the order in which the messages
/// leave in the dataflow Program (ties by producer). Only receives are moved.
///
/// With kLast such lists cannot deadlock in any mode. Proof: of the messages that are not complete,
/// let m be the first to leave. At both ends all sends and receives before m are complete, so the
/// compute ops before m have their inputs; so both ends reach m, and it completes.
std::vector<RankOrder> order_receives(const Program& dataflow, const Timeline& timeline,
                                      const std::vector<PostedSteps>& steps, ReceiveTiming timing);

}  // namespace bubblescope::inline sim
