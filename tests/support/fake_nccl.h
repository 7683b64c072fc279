// NCCL for tests: processes that were forked from one, connected by sockets. The fake device does
// at once what it is told, so a transfer or a sum is under way until its bytes are there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "exec/nccl/calls.h"

namespace bubblescope {

struct FakeNccl {
  std::string fails_at;            ///< the name of a call that fails; empty: none does
  std::int64_t communicators = 0;  ///< that were made and not released
  std::int64_t groups = 0;         ///< that were ended
  std::int64_t spreads = 0;        ///< calls of it
  bool was_aborted = false;
  bool was_released_under_way = false;  ///< a communicator went that nobody had aborted
  std::function<void()> at_abort;       ///< called at the first one; may be empty
};

/// Before the fork: sockets between all pairs of so many processes.
void open_fake_nccl(std::int32_t processes);

/// In each process: which of them it is; any other number closes all sockets.
void enter_fake_nccl(std::int32_t rank);

/// Of this process.
FakeNccl& fake_nccl();

/// Its calls.
const BubblescopeNccl& fake_nccl_calls();

}  // namespace bubblescope
