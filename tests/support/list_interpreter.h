// A plain interpreter of posted lists with waits for sends, for the modes `dataflow`, `fifo` and
// `rendezvous`: it shares no code with the lowering to Programs.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "sim/ir/p2p_mode.h"
#include "sim/ir/units.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/cost_model.h"

namespace bubblescope::tests {

/// A message by stage, micro-batch, slice and direction of its SEND.
using MessageKey = std::tuple<std::int32_t, std::int32_t, std::int16_t, bool>;

/// The message that a SEND, a RECV or a wait is about.
MessageKey key_of(const Schedule& schedule, const Op& op);

/// The result of an interpreted step.
struct WalkedLists {
  Nanos makespan = 0;
  std::vector<std::int64_t> outputs;  ///< [rank]: the most held at once
};

/// Runs the lists of a schedule without overlapped pairs, which must have a WAIT_SEND for each
/// SEND. Every message takes `costs.message`.
WalkedLists walk_lists(const ValidSchedule& schedule, const std::vector<RankOrder>& lists,
                       const CostModel& costs, P2pMode mode);

}  // namespace bubblescope::tests
