// Where receives could be posted instead.
#pragma once

#include <vector>

#include "sim/ir/posted_steps.h"
#include "sim/ir/timeline.h"

namespace bubblescope {

/// How early a receive is posted, as far as the one order of all messages leaves a choice.
enum class ReceiveTiming : std::uint8_t {
  kLast,         ///< before the op that needs it, or before a send that leaves later
  kWhenLeft,     ///< also before the first op that starts after the message has left
  kWhenArrived,  ///< also before the first op that starts after the message has arrived
};

/// Posted lists in which every rank has its sends and receives in the order in which the messages
/// leave in the dataflow Program (ties by who makes them). Only receives are moved.
///
/// With kLast such lists cannot deadlock in any mode: of the messages that are not through yet, let
/// m be the first to leave. At either end all sends and receives before m are through, so the
/// compute ops before m have what they need; so both ends come to m, and it goes through.
std::vector<RankOrder> order_receives(const Program& dataflow, const Timeline& timeline,
                                      const std::vector<PostedSteps>& steps, ReceiveTiming timing);

}  // namespace bubblescope
