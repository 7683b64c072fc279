// Joins the calls that post messages with the kernels that carry them out.
#include "traces/measured/message_kernels.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_map>

namespace bubblescope::traces {

namespace {

/// The calls that post messages and the launches of their kernels, by thread and time.
std::map<std::uint32_t, std::vector<ProfiledEvent>> find_calls(
    const ChromeEvents& events,
    const std::unordered_map<std::int64_t, const ProfiledEvent*>& kernels) {
  std::map<std::uint32_t, std::vector<ProfiledEvent>> calls;
  for (const ProfiledEvent& event : events.profiled) {
    const bool posts = event.activity == Activity::kSend || event.activity == Activity::kReceive;
    const bool launches = event.activity == Activity::kLaunch && kernels.contains(event.number);
    if (posts || launches) calls[event.thread].push_back(event);
  }
  for (auto& [_, of_thread] : calls) sort_by_start(of_thread);
  return calls;
}

/// Whether an op gives or takes something that messages carry.
bool communicates(const ObservedOp& op) {
  return op.device && (op.op.kind == OpKind::kForward || gives_input_grad(op.op.kind));
}

/// An activation, or a gradient: step, chunk, stage, micro-batch, slice, and which of the two.
using ResultKey = std::tuple<std::int64_t, std::int32_t, std::int32_t, std::int32_t, int, bool>;

ResultKey key_of(const ObservedOp& op, bool forward) {
  return {op.step, op.chunk.value_or(0), op.op.stage, op.op.microbatch, op.op.slice, forward};
}

ObservedOp make_message(const ObservedOp& op, const MessageKernel& kernel, bool sends) {
  ObservedOp message = op;
  const bool forward = op.op.kind == OpKind::kForward;
  message.op.kind = sends ? (forward ? OpKind::kSendForward : OpKind::kSendBackward)
                          : (forward ? OpKind::kRecvForward : OpKind::kRecvBackward);
  message.op.pairing = {};
  message.start = kernel.span.start;
  message.end = kernel.span.end;
  message.device = kernel.place;
  message.is_arrival = true;
  return message;
}

}  // namespace

std::vector<MessageKernel> find_message_kernels(const ChromeEvents& events) {
  std::unordered_map<std::int64_t, const ProfiledEvent*> device;
  for (const ProfiledEvent& event : events.profiled)
    if (event.activity == Activity::kMessageKernel) device.emplace(event.number, &event);
  std::vector<MessageKernel> kernels;
  for (const auto& [thread, calls] : find_calls(events, device)) {
    MessageKernel next;
    bool is_posted = false;
    for (const ProfiledEvent& call : calls) {
      if (!is_posted) next.posted_from = call.start;
      is_posted = true;
      next.sends = next.sends || call.activity == Activity::kSend;
      next.receives = next.receives || call.activity == Activity::kReceive;
      if (call.activity != Activity::kLaunch) continue;
      const ProfiledEvent& kernel = *device.at(call.number);
      next.span = {kernel.start, kernel.end};
      next.place = {call.start, kernel.thread, call.number};
      kernels.push_back(next);
      next = {};
      is_posted = false;
    }
  }
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const MessageKernel& left, const MessageKernel& right) {
                     return left.place.launched < right.place.launched;
                   });
  return kernels;
}

std::optional<MessageKernel> find_only_kernel(const std::vector<MessageKernel>& kernels,
                                              const TimeSpan& range) {
  const auto first = std::lower_bound(
      kernels.begin(), kernels.end(), range.start,
      [](const MessageKernel& kernel, Nanos time) { return kernel.place.launched < time; });
  if (first == kernels.end() || first->place.launched > range.end) return {};
  if (first + 1 != kernels.end() && (first + 1)->place.launched <= range.end) return {};
  return *first;
}

std::vector<ObservedOp> infer_messages(const std::vector<MessageKernel>& kernels,
                                       const std::vector<ObservedOp>& ops) {
  std::map<Nanos, std::size_t> at_launch;
  for (std::size_t at = 0; at < ops.size(); ++at)
    if (communicates(ops[at])) at_launch.emplace(ops[at].device->launched, at);
  std::map<std::size_t, const MessageKernel*> sent;
  std::map<std::size_t, const MessageKernel*> received;
  for (const MessageKernel& kernel : kernels) {
    const auto next = at_launch.upper_bound(kernel.place.launched);
    if (kernel.receives && next != at_launch.end()) received[next->second] = &kernel;
    const auto behind = at_launch.lower_bound(kernel.posted_from);
    if (kernel.sends && behind != at_launch.begin())
      sent.emplace(std::prev(behind)->second, &kernel);
  }
  std::vector<ObservedOp> messages;
  for (const auto& [at, kernel] : received)
    messages.push_back(make_message(ops[at], *kernel, false));
  for (const auto& [at, kernel] : sent) messages.push_back(make_message(ops[at], *kernel, true));
  return messages;
}

std::vector<ObservedOp> extend_to_results(std::vector<ObservedOp> ops,
                                          const ProfileActivity& activity) {
  std::map<ResultKey, ObservedOp*> producers;
  for (ObservedOp& op : ops)
    if (communicates(op)) producers.emplace(key_of(op, op.op.kind == OpKind::kForward), &op);
  for (const ObservedOp& message : ops) {
    if (!is_send(message.op.kind) || !message.device) continue;
    const bool forward = message.op.kind == OpKind::kSendForward;
    const auto producer = producers.find(key_of(message, forward));
    if (producer == producers.end()) continue;
    ObservedOp& op = *producer->second;
    const TimeSpan launched{op.device->launched, message.device->launched};
    if (const auto end = activity.find_awaited_collective(launched, message.start))
      op.end = std::max(op.end, *end);
  }
  return ops;
}

}  // namespace bubblescope::traces
