// Walks along the calls of a rank.
#include "traces/measured/message_ranges.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/ir/error.h"

namespace bubblescope::traces {

namespace {

constexpr const char* kHint =
    "; annotate the ops (tools/hooks/bubblescope_hooks.py), or record whole steps";

std::string describe(const MessageCall& call) {
  std::string text;
  const auto add = [&](bool does, const char* what) {
    if (does) text += (text.empty() ? "" : "_") + std::string(what);
  };
  add(call.sends_forward, "send_forward");
  add(call.sends_backward, "send_backward");
  add(call.receives_forward, "recv_forward");
  add(call.receives_backward, "recv_backward");
  return text;
}

void expect_one_stage(const MessageCall& call, const std::string& where) {
  const bool is_of_several =
      (call.sends_forward && (call.sends_backward || call.receives_forward)) ||
      (call.sends_backward && call.receives_backward) ||
      (call.receives_forward && call.receives_backward);
  if (is_of_several)
    throw Error(
        fmt::format("{}: the call {} belongs to a schedule with several stages per rank, "
                    "whose ops cannot be distinguished by their messages{}",
                    where, describe(call), kHint));
}

/// Whether `next` may follow: what was received is computed and sent, and nothing else.
bool may_follow(const MessageCall& call, const MessageCall& next) {
  return call.receives_forward == next.sends_forward &&
         call.receives_backward == next.sends_backward;
}

}  // namespace

std::optional<MessageCall> parse_message_call(std::string_view name) {
  name = name.substr(0, name.find(", "));
  name.remove_prefix(name.rfind('.') + 1);
  MessageCall call;
  std::optional<bool> sends;
  bool names_direction = false;
  while (!name.empty()) {
    const std::string_view word = name.substr(0, name.find('_'));
    name.remove_prefix(std::min(name.size(), word.size() + 1));
    if (word == "send" || word == "recv") {
      sends = word == "send";
    } else if (word == "forward" && sends) {
      (*sends ? call.sends_forward : call.receives_forward) = names_direction = true;
    } else if (word == "backward" && sends) {
      (*sends ? call.sends_backward : call.receives_backward) = names_direction = true;
    } else {
      return {};
    }
  }
  if (!names_direction) return {};
  return call;
}

std::vector<BetweenCalls> find_ops_between(const std::vector<TimedCall>& calls,
                                           const std::string& where) {
  std::vector<BetweenCalls> ops;
  for (std::size_t at = 0; at < calls.size(); ++at) {
    const MessageCall& call = calls[at].call;
    expect_one_stage(call, where);
    if (at == 0 && call.sends())
      throw Error(fmt::format("{}: its first message is {}: the recording begins within a step{}",
                              where, describe(call), kHint));
    if (at + 1 == calls.size()) {
      if (call.receives())
        throw Error(fmt::format("{}: its last message is {}: the recording ends within a step{}",
                                where, describe(call), kHint));
      break;
    }
    const TimedCall& next = calls[at + 1];
    if (!may_follow(call, next.call) || next.start < calls[at].end)
      throw Error(
          fmt::format("{}: {} follows {}, after {} calls: a message is missing, or was "
                      "renamed or moved{}",
                      where, describe(next.call), describe(call), at + 1, kHint));
    if (!call.receives()) continue;
    ops.push_back({call.receives_forward ? OpKind::kForward : OpKind::kBackward, calls[at].end,
                   next.start, at});
  }
  return ops;
}

}  // namespace bubblescope::traces
