// A simulated NCCL for tests: the processes are forked from one and connected by sockets. The
// simulated device works synchronously, so a transfer or a sum is in progress until its bytes have
// arrived.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "exec/nccl/calls.h"

namespace bubblescope::tests {

struct FakeNccl {
  std::string fails_at;            ///< name of the call that fails; empty: none
  std::int64_t communicators = 0;  ///< created and not released
  std::int64_t groups = 0;         ///< ended
  std::int64_t spreads = 0;        ///< number of calls
  bool was_aborted = false;
  bool was_released_under_way = false;  ///< a communicator was released before it was aborted
  std::function<void()> at_abort;       ///< called at the first abort; may be empty
};

/// Connects so many processes pairwise by sockets; call before the fork.
void open_fake_nccl(std::int32_t processes);

/// Sets the rank of a forked process; any other number closes all sockets.
void enter_fake_nccl(std::int32_t rank);

/// The state of this process.
FakeNccl& fake_nccl();

/// The calls of the simulated NCCL.
const BubblescopeNccl& fake_nccl_calls();

}  // namespace bubblescope::tests
