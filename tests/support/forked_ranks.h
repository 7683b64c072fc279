// Ranks in processes of their own, for tests of what they do together.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "exec/nccl/socket_transport.h"

namespace bubblescope::tests {

/// How one process ended.
struct RankEnd {
  bool ended = false;  ///< by itself
  std::string said;
};

/// Forks a process per rank, linked over loopback, with a fake NCCL and a fake GPU each; what `run`
/// returns or throws is what it said. Processes that are not done when rank 0 and some seconds have
/// gone are killed.
std::vector<RankEnd> run_ranks(std::int32_t count,
                               const std::function<std::string(exec::SocketTransport& link)>& run);

/// Expects that all ranks but `victim` ended by themselves and said a text with this beginning.
void expect_others_say(const std::vector<RankEnd>& ends, std::int32_t victim,
                       const std::string& begin);

}  // namespace bubblescope::tests
