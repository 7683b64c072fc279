// NCCL's kernels for messages. One kernel sends and receives what the host posted together, and
// keeps its stream until all of that is done, so later messages of its rank wait for it:
//
//   host      |F0| send |launch|       |recv|launch|  |B0|
//   stream                    [SEND_F0 ][ RECV_B0            ]
#pragma once

#include <optional>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/chrome_events.h"
#include "traces/measured/profile_activity.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

struct MessageKernel {
  TimeSpan span;
  DevicePlace place;
  Nanos posted_from = 0;  ///< the first of the calls that it carries out; else its launch
  bool sends = false;
  bool receives = false;
};

/// The message kernels of a profile, in the order of their launches. Each carries out the calls of
/// its thread since the kernel before.
std::vector<MessageKernel> find_message_kernels(const ChromeEvents& events);

/// Returns the only kernel that was launched within a range of the host; nullopt for none or
/// several.
std::optional<MessageKernel> find_only_kernel(const std::vector<MessageKernel>& kernels,
                                              const TimeSpan& range);

/// The messages of ops that one stage per rank runs, where no annotation names a message: a send
/// carries the result of the op before it, and a receive the input of the op after it. Where
/// several kernels lie between two ops, these are the nearest. Ops without a device have none.
std::vector<ObservedOp> infer_messages(const std::vector<MessageKernel>& kernels,
                                       const std::vector<ObservedOp>& ops);

/// Lets every op end with the work that the message of its result waited for: a reduction of
/// gradients after the last backward (DDP) runs on a stream of its own, but is done before the
/// backward returns, and so before its gradient leaves.
std::vector<ObservedOp> extend_to_results(std::vector<ObservedOp> ops,
                                          const ProfileActivity& activity);

}  // namespace bubblescope::traces
