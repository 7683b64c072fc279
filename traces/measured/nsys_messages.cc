// Finds messages by the calls that received them, or by the time at which their kernels end.
#include "traces/measured/nsys_messages.h"

#include <algorithm>
#include <iterator>

#include "traces/measured/device_contradictions.h"

namespace bubblescope::traces {

namespace {

bool is_forward(const OpRange& op) { return op.named.op.kind == OpKind::kForward; }

bool takes_input(const OpRange& op) { return is_forward(op) || gives_input_grad(op.named.op.kind); }

/// The time of the host between two ops where only a receive is posted on a whole pipeline's inner
/// ranks, and nothing on the rank at its end: before the first forward of a step, when no
/// micro-batch is in flight, and between the forward and the backward of the only one in flight.
/// Empty for the other ops.
std::vector<std::optional<TimeSpan>> find_turns(const std::vector<OpRange>& ops) {
  std::vector<std::optional<TimeSpan>> turns(ops.size());
  std::int64_t in_flight = 0;
  const OpRange* before = nullptr;
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const OpRange& op = ops[at];
    if (!is_compute(op.named.op.kind)) continue;
    const bool begins_step = is_forward(op) && in_flight == 0;
    const bool turns_back = !is_forward(op) && takes_input(op) && in_flight == 1;
    // A rank may post anything before the first op of a recording.
    if (before && (begins_step || (turns_back && is_forward(*before))))
      turns[at] = TimeSpan{before->host.end, op.host.start};
    in_flight += is_forward(op) ? 1 : 0;
    in_flight -= gives_input_grad(op.named.op.kind) || op.second ? 1 : 0;
    before = &op;
  }
  return turns;
}

}  // namespace

void find_received_calls(std::vector<OpRange>& ops, const std::vector<TimedCall>& calls) {
  TimeSpan forward;
  TimeSpan backward;
  auto call = calls.begin();
  for (OpRange& op : ops) {
    for (; call != calls.end() && call->start < op.host.start; ++call) {
      if (call->call.receives_forward) forward = {call->start, call->end};
      if (call->call.receives_backward) backward = {call->start, call->end};
    }
    if (takes_input(op)) op.received = is_forward(op) ? forward : backward;
  }
}

NsysMessages::NsysMessages(const NsysRecording& recording, std::int64_t process,
                           const std::vector<OpRange>& ops, const std::vector<TimedCall>& calls)
    : turns_(find_turns(ops)) {
  const auto launches = recording.launches.find(process);
  const auto activities = recording.activities.find(process);
  if (launches == recording.launches.end() || activities == recording.activities.end()) return;
  std::vector<TimeSpan> named;
  for (const TimedCall& call : calls) named.push_back({call.start, call.end});
  for (const OpRange& op : ops) named.push_back(op.host);
  sort_by_start(named);
  named = find_outer_spans(named);
  for (const CudaCall& launch : launches->second) {
    const auto activity = activities->second.find(launch.correlation);
    if (activity == activities->second.end() || !activity->second.is_message) continue;
    if (lies_in(named, launch.start)) continue;
    messages_.push_back({activity->second.start, activity->second.end});
    posted_.push_back(launch.start);
  }
  std::stable_sort(
      messages_.begin(), messages_.end(),
      [](const TimeSpan& left, const TimeSpan& right) { return left.end < right.end; });
}

std::optional<Arrival> NsysMessages::find_awaited(std::size_t op, const TimeSpan& waiting) const {
  const auto next =
      std::upper_bound(messages_.begin(), messages_.end(), waiting.end,
                       [](Nanos time, const TimeSpan& message) { return time < message.end; });
  if (next == messages_.begin() || std::prev(next)->end <= waiting.start) return {};
  return Arrival{*std::prev(next), !turns_[op] || !was_posted_within(*turns_[op])};
}

/// Launches are by start.
bool NsysMessages::was_posted_within(const TimeSpan& host) const {
  const auto first = std::upper_bound(posted_.begin(), posted_.end(), host.start);
  return first != posted_.end() && *first < host.end;
}

}  // namespace bubblescope::traces
