// Tells ranks apart that have the same rank of the pipeline and the same process: tensor-parallel
// peers, or data-parallel replicas, which a process may hold for a whole node.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/measured/chrome_ranks.h"

namespace bubblescope::traces {

/// The rank of the pipeline, and the process.
using PeerPlace = std::pair<std::int64_t, std::string>;

/// The numbers by which peers differ: a place in the tensor-parallel group, a rank of the job and a
/// thread; nothing where these do not tell them apart.
using Peer = std::array<std::optional<std::int64_t>, 3>;

/// [op], as `places`: the peer that ran it. Threads are peers where two run the same op at the same
/// time. A message that states none is of the peer that computes on its thread, or else just before
/// it is sent or after it is received.
std::vector<Peer> find_peers(const std::vector<ChromeOp>& ops,
                             const std::vector<PeerPlace>& places);

/// Numbers the recorders of a place within their tensor-parallel group, if the ops of all state
/// that number; else those are of one group that run in step. `recorders` are those of each place,
/// in order.
ChromeRanks number_tensor_peers(ChromeRanks ranks, const std::vector<ChromeOp>& ops,
                                const std::vector<std::vector<std::int32_t>>& recorders);

}  // namespace bubblescope::traces
