// The action lists that PyTorch's pipeline runtime executes, as each of its releases writes them.
//
//   2.6 to 2.14  0F0 0SEND_F0 0RECV_B0 0B0
//   since 2.15   0F0 0SEND_F0 0RECV_B0 0B0 0WAIT_SEND_F0 0REDUCE_GRAD 0WAIT_REDUCE_GRAD
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ir/lower.h"
#include "sim/ir/pytorch_release.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope::inline sim {

/// The lists that `convert` writes; by default those of the current release.
struct PytorchListOptions {
  PytorchRelease release = PytorchRelease::kFrom215;
  ReceivePosting posting = ReceivePosting::kAsap;
  std::optional<std::int32_t> send_budget = {};  ///< since 2.15; nullopt: none (send_budget.h)
  /// Since 2.15: whether the reductions that are added, and their waits, take turns when messages
  /// are placed, as there. Else they are added to the lists that lower() follows.
  bool reductions_take_turns = true;
};

/// The lists of a schedule, [rank]: its compute ops, collectives and messages; since 2.15 also all
/// waits, and the reductions by which the runtime scales gradients. A schedule that posts messages
/// keeps them in place; waits are added or removed to suit the release, and where waits are added
/// to lists without any reduction, reductions too.
///
/// Throws Error for orders that deadlock.
std::vector<RankOrder> make_pytorch_lists(const ValidSchedule& schedule,
                                          const PytorchListOptions& options = {});

/// Gives a schedule without messages idle cells for the reductions and waits that it lacks, and
/// drops all others. So lower() posts messages where the releases since 2.15 do, whose reductions
/// take turns when messages are placed.
ValidSchedule take_turns_of_215(ValidSchedule schedule);

/// PyTorch's _add_wait_send: waits for a SEND_F after its micro-batch's backward on the same stage,
/// when the peer must have received it, and for all other sends at the end of the list.
RankOrder add_send_waits(const RankOrder& list);

/// Adds a WAIT_REDUCE_GRAD directly after every REDUCE_GRAD.
RankOrder add_reduction_waits(const RankOrder& list);

}  // namespace bubblescope::inline sim
