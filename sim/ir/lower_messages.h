// Posted messages as instructions, lanes and edges: the dataflow Program with posts and waits woven
// in. What the dataflow Program has stays as it is; its messages and compute ops only wait longer.
//
//   separate queues (fifo, eager, rendezvous): a lane "communication" per rank
//     SEND    a post: waits for the producer, and for a free slot; then the message leaves
//     RECV    a post, then a wait for the message; its consumers wait for the wait
//     WAIT_SEND  no instruction: the next post and the next compute op wait for the SEND's post, or
//                where there are no slots, for the message
//   the rank's one list (host-rendezvous, host-send, batched): a lane "host" per rank, in which
//   posts and waits stand behind the compute op before them and hold up the one after them
//     host-rendezvous  SEND, RECV: a post, then a wait; the message leaves after both posts
//     host-send        the same, but a RECV has no wait, and a SEND waits only for the RECV's post
//     batched          all posts of a run of messages, then all its waits
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "sim/ir/lower.h"
#include "sim/ir/posted_steps.h"

namespace bubblescope {

/// Slots of a directed channel; empty: as many as there are messages.
using Slots = std::optional<std::int32_t>;

/// A communication queue per rank.
std::variant<Program, Deadlock> lower_to_queues(const Program& dataflow,
                                                const std::vector<PostedSteps>& steps, Slots slots);

/// Messages in the rank's one list, under kHostRendezvous, kHostSend or kBatched.
std::variant<Program, Deadlock> lower_to_host(const Program& dataflow,
                                              const std::vector<PostedSteps>& steps, P2pMode mode);

/// Either of them, after the mode; kDataflow gives the Program back.
std::variant<Program, Deadlock> lower_messages(const Program& dataflow,
                                               const std::vector<PostedSteps>& steps,
                                               const LowerOptions& options);

}  // namespace bubblescope
