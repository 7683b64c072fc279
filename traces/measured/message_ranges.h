// Megatron-LM names its messages but not its forwards and backwards: those lie between a receive
// and the next send.
//
//   recv_forward |  F  | send_forward_recv_backward |  B  | send_backward_recv_forward |  F  | ...
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/op.h"
#include "sim/ir/units.h"

namespace bubblescope::traces {

/// The messages of one call of Megatron's p2p_communication.
struct MessageCall {
  bool sends_forward = false;
  bool sends_backward = false;
  bool receives_forward = false;
  bool receives_backward = false;

  bool receives() const { return receives_forward || receives_backward; }
  bool sends() const { return sends_forward || sends_backward; }
};

/// Parses "megatron.core.pipeline_parallel.p2p_communication.send_forward_recv_backward"; nullopt
/// for any other name.
std::optional<MessageCall> parse_message_call(std::string_view name);

/// A call with its time.
struct TimedCall {
  MessageCall call;
  Nanos start = 0;
  Nanos end = 0;
};

/// The work between two calls.
struct BetweenCalls {
  OpKind kind = OpKind::kForward;
  Nanos start = 0;           ///< end of the call that received the op's input
  Nanos end = 0;             ///< start of the call that sends its result
  std::size_t received = 0;  ///< index of the first of these calls
};

/// Returns the ops of one rank, from its calls by start. Throws Error, which begins with `where`,
/// if calls cannot follow each other, or if they are those of several stages per rank, because then
/// their ops cannot be distinguished.
std::vector<BetweenCalls> find_ops_between(const std::vector<TimedCall>& calls,
                                           const std::string& where);

}  // namespace bubblescope::traces
