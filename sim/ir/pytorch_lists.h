// The action lists that PyTorch's pipeline runtime follows, as each of its releases makes them.
//
//   2.6 to 2.14  0F0 0SEND_F0 0RECV_B0 0B0
//   since 2.15   0F0 0SEND_F0 0RECV_B0 0B0 0WAIT_SEND_F0 0REDUCE_GRAD 0WAIT_REDUCE_GRAD
#pragma once

#include <vector>

#include "sim/ir/lower.h"
#include "sim/ir/pytorch_release.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope {

/// The lists that `convert` is asked for; by default those of the current release.
struct PytorchListOptions {
  PytorchRelease release = PytorchRelease::k2_15;
  Lowering posting = Lowering::kAsap;
};

/// The lists of a schedule, [rank]: its compute ops, collectives and messages, and since 2.15 the
/// reductions, by which its runtime scales gradients, and all waits. A schedule that posts messages
/// keeps them where they stand; waits are added or left out as the release asks for.
///
/// Throws Error for orders that wait for each other.
std::vector<RankOrder> make_pytorch_lists(const ValidSchedule& schedule,
                                          const PytorchListOptions& options = {});

/// PyTorch's _add_wait_send: a SEND_F waits behind its micro-batch's backward on the same stage,
/// when the peer must have received it; everything else that was sent waits at the end of the list.
RankOrder add_send_waits(const RankOrder& list);

/// A WAIT_REDUCE_GRAD right behind every REDUCE_GRAD.
RankOrder add_reduction_waits(const RankOrder& list);

}  // namespace bubblescope
