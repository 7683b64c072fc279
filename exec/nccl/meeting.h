// How the processes of one run find each other: all call rank 0, and say who they are.
#pragma once

#include <functional>

#include "exec/backend.h"
#include "exec/nccl/process_link.h"

namespace bubblescope {

/// Rank 0: waits at the listener until all others have come. Whoever is not one of them is turned
/// away. Throws Error that names who did not come within the limits.
ProcessLink receive_others(const TcpSocket& listener, std::int32_t count, const Limits& limits);

/// How an address is called: not open where nobody answers, Error where its name is not known.
using Caller = std::function<TcpSocket(const Address&)>;

/// Another rank: calls until rank 0 answers. Throws Error where it does not within the limits, or
/// turns this process away.
ProcessLink call_first(const Address& address, const Seat& seat, const Limits& limits,
                       const Caller& caller = call);

}  // namespace bubblescope
