// Messages in the queues of devices. A kernel that carries messages starts after the kernel before
// it in its stream and after the ops that were launched before it, and ends when all its messages
// are there. So a message may wait for others that have nothing to do with it:
//
//   rank 0   |= 0F0 =|= 0F1 =|
//     queue          [SEND_F0][SEND_F1          ]
//   rank 1                     |= 1F0 =|
//     queue   [RECV_F0       ] [SEND_F0][RECV_F1]     RECV_F1 was launched after 1SEND_F0
//
// A message is in transit from the time when the kernels at both ends, and those that these wait
// for, have started, until the receiving kernel ends. A send that has ended before its receiver
// started lies in a buffer and needed none.
#pragma once

#include <optional>
#include <vector>

#include "sim/ir/schedule.h"
#include "traces/files/trace_format.h"

namespace bubblescope::traces {

struct QueuedStep {
  Program program;  ///< with a post and a wait for the ends of every message
  Timeline timeline;
};

/// One step as observed, of which `program` has ops and messages, but no queues.
struct ObservedQueues {
  const Schedule& schedule;
  const Program& program;
  const Timeline& timeline;
  const std::vector<std::vector<ObservedOp>>& lanes;  ///< [rank], in the order of their ops
  const std::vector<ObservedOp>& messages;            ///< their `recorder` is their rank
};

/// nullopt unless the kernels at both ends of every message were observed, and when each op was
/// launched.
std::optional<QueuedStep> queue_messages(const ObservedQueues& observed);

}  // namespace bubblescope::traces
