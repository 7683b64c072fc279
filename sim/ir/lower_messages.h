// Lowers posted messages: adds posts and waits to the dataflow Program. Its instructions stay as
// they are; messages and compute ops only wait longer.
//
//   separate queues (fifo, eager, rendezvous): a lane "communication" per rank
//     SEND    a post: waits for the producer and for a free slot; then the message leaves
//     RECV    a post, then a wait for the message; its consumers wait for the wait
//     WAIT_SEND  adds no instruction: the next post and the next compute op wait for the SEND's
//                post or, without slots, for the message
//   one list per rank (host-rendezvous, host-send, batched): a lane "host" per rank, whose posts
//   and waits follow the compute op before them and block the one after them
//     host-rendezvous  SEND, RECV: a post, then a wait; the message leaves after both posts
//     host-send        the same, but a RECV has no wait, and a SEND waits only for the RECV's post
//     batched          all posts of a run of messages, then all its waits
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "sim/ir/lower.h"
#include "sim/ir/posted_steps.h"

namespace bubblescope::inline sim {

/// Slots of a directed channel; empty: unlimited.
using Slots = std::optional<std::int32_t>;

/// Posts messages to a communication queue per rank.
std::variant<Program, Deadlock> lower_to_queues(const Program& dataflow,
                                                const std::vector<PostedSteps>& steps, Slots slots);

/// Posts messages in the rank's own list, for kHostRendezvous, kHostSend and kBatched.
std::variant<Program, Deadlock> lower_to_host(const Program& dataflow,
                                              const std::vector<PostedSteps>& steps, P2pMode mode);

/// Chooses between the two by the mode; for kDataflow returns the Program unchanged.
std::variant<Program, Deadlock> lower_messages(const Program& dataflow,
                                               const std::vector<PostedSteps>& steps,
                                               const LowerOptions& options);

}  // namespace bubblescope::inline sim
