// Megatron-LM's interleaved schedule (virtual pipeline stages) names its messages as 1F1B does, but
// no call says which of its rank's chunks an op runs. The order does: every rank runs
//
//   recv_forward | F | send_forward_recv_forward | F | ... w forwards in all, then in turn
//   F B | send_forward_backward_recv_forward_backward | F B | ... | B | send_backward_recv_backward
//
// with w = 2 (p - rank - 1) + (v - 1) p, in groups of p micro-batches for each of v chunks. So the
// w of all ranks give p, the ranks' places and v. With overlapped messages
// (--overlap-p2p-communication), F and B have calls of their own:
//
//   F | send_forward_recv_forward | B | send_backward_recv_backward | F | ...
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "traces/measured/message_ranges.h"

namespace bubblescope::traces {

/// Between two calls a rank runs an op, or a forward and then a backward.
struct CalledOps {
  std::int64_t step = 0;
  Op op;  ///< with its stage and micro-batch
  std::optional<Op> backward = {};
  Nanos start = 0;
  Nanos end = 0;
  std::optional<std::size_t> received = {};  ///< index of the call that received op's input
};

/// Whether any call belongs to a schedule with several stages per rank.
bool are_interleaved(const std::vector<TimedCall>& calls);

/// Returns the ops of every process, from the calls of all ranks of one pipeline. Throws Error,
/// which begins with `where`, if their order is not that of Megatron's schedule, or leaves open
/// which chunks the ops run.
std::map<std::int64_t, std::vector<CalledOps>> find_interleaved_ops(
    const std::map<std::int64_t, std::vector<TimedCall>>& processes, const std::string& where);

}  // namespace bubblescope::traces
