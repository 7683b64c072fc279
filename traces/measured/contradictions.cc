// Checks the host's side of a profile: numbers, nesting, flows and the ops' content.
#include "traces/measured/contradictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "sim/ir/counted.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

/// An event of the host.
struct HostEvent {
  TimeSpan span;
  std::int64_t number = kNoNumber;
};

bool is_on_host(Activity activity) {
  return activity == Activity::kCall || activity == Activity::kAutograd ||
         activity == Activity::kSend || activity == Activity::kReceive;
}

/// The calls, gradient functions and annotated ops of every thread, by start, outer ones first.
std::vector<std::vector<HostEvent>> find_host_events(const ChromeEvents& events,
                                                     const ProfiledOps& ops) {
  std::vector<std::vector<HostEvent>> threads(events.threads.size());
  for (const ProfiledEvent& event : events.profiled)
    if (is_on_host(event.activity))
      threads[event.thread].push_back({{event.start, event.end}, event.number});
  if (ops.are_annotated)
    for (const OpSpan& op : ops.spans) threads[op.thread].push_back({op.span, op.number});
  const auto before = [](const HostEvent& left, const HostEvent& right) {
    return std::tuple(left.span.start, -left.span.end, left.number) <
           std::tuple(right.span.start, -right.span.end, right.number);
  };
  for (std::vector<HostEvent>& thread : threads)
    if (!std::is_sorted(thread.begin(), thread.end(), before))
      std::sort(thread.begin(), thread.end(), before);
  return threads;
}

/// Returns the number of events that begin before one with a smaller number.
std::int64_t count_disordered(const std::vector<HostEvent>& events) {
  std::int64_t count = 0;
  const HostEvent* last = nullptr;
  for (const HostEvent& event : events) {
    if (event.number < 0) continue;
    if (last == nullptr || event.number > last->number)
      last = &event;
    else if (event.span.start > last->span.start + kProfileRounding)
      ++count;
  }
  return count;
}

/// The number of events that reach over the end of the one in which they begin.
std::int64_t count_crossing(const std::vector<HostEvent>& events) {
  std::int64_t count = 0;
  std::vector<Nanos> open;  // ends
  for (const HostEvent& event : events) {
    while (!open.empty() && open.back() <= event.span.start + kProfileRounding) open.pop_back();
    if (!open.empty() && event.span.end > open.back() + kProfileRounding) ++count;
    open.push_back(event.span.end);
  }
  return count;
}

/// The number of flows with one end, in a file that has ends of flows at all.
std::int64_t count_half_flows(const ChromeEvents& events) {
  constexpr std::uint8_t kStart = 1;
  constexpr std::uint8_t kEnd = 2;
  std::unordered_map<std::int64_t, std::uint8_t> ends;
  bool any_end = false;
  for (const ProfiledEvent& event : events.profiled) {
    if (event.activity == Activity::kGradientFlow) ends[event.number] |= kStart;
    if (event.activity != Activity::kGradientEnd) continue;
    ends[event.number] |= kEnd;
    any_end = true;
  }
  if (!any_end) return 0;
  return std::count_if(ends.begin(), ends.end(),
                       [](const auto& flow) { return flow.second != (kStart | kEnd); });
}

/// Returns the outer spans of the chosen host events of every thread.
std::vector<std::vector<TimeSpan>> find_outer_by_thread(const ChromeEvents& events,
                                                        bool (*is_chosen)(Activity)) {
  std::vector<std::vector<TimeSpan>> threads(events.threads.size());
  for (const ProfiledEvent& event : events.profiled)
    if (is_chosen(event.activity)) threads[event.thread].push_back({event.start, event.end});
  for (std::vector<TimeSpan>& thread : threads) {
    sort_by_start(thread);
    thread = find_outer_spans(thread);
  }
  return threads;
}

bool is_gradient(Activity activity) { return activity == Activity::kAutograd; }

/// The ends of flows that lie outside of what they should lead to.
std::int64_t count_loose_flows(const ChromeEvents& events,
                               const std::vector<std::vector<TimeSpan>>& host,
                               const std::vector<std::vector<TimeSpan>>& gradients) {
  std::int64_t count = 0;
  for (const ProfiledEvent& event : events.profiled) {
    if (event.activity == Activity::kGradientFlow)
      count += lies_in(host[event.thread], event.start, kProfileRounding) ? 0 : 1;
    if (event.activity == Activity::kGradientEnd)
      count += lies_in(gradients[event.thread], event.start, kProfileRounding) ? 0 : 1;
  }
  return count;
}

/// The time of gradient functions, and of calls with a flow to one, within steps and in no op, as a
/// share of all of them.
double share_of_strays(const ChromeEvents& events, const std::vector<std::vector<TimeSpan>>& host,
                       const std::vector<TimeSpan>& steps, const std::vector<TimeSpan>& ops) {
  std::vector<std::vector<Nanos>> marks(events.threads.size());
  for (const ProfiledEvent& event : events.profiled)
    if (event.activity == Activity::kGradientFlow || is_gradient(event.activity))
      marks[event.thread].push_back(event.start);
  Nanos inside = 0;
  Nanos stray = 0;
  for (std::size_t thread = 0; thread < host.size(); ++thread) {
    std::sort(marks[thread].begin(), marks[thread].end());
    auto mark = marks[thread].begin();
    for (const TimeSpan& call : host[thread]) {
      while (mark != marks[thread].end() && *mark < call.start) ++mark;
      if (mark == marks[thread].end() || *mark > call.end) continue;
      if (!lies_in(steps, call.start, kProfileRounding)) continue;
      (lies_in(ops, call.start, kProfileRounding) ? inside : stray) += call.end - call.start;
    }
  }
  if (stray == 0) return 0;
  return static_cast<double>(stray) / static_cast<double>(inside + stray);
}

std::vector<OpSpan> sort_ops(std::vector<OpSpan> ops) {
  std::stable_sort(ops.begin(), ops.end(), [](const OpSpan& left, const OpSpan& right) {
    return left.span.start < right.span.start;
  });
  return ops;
}

std::vector<TimeSpan> outline_ops(const std::vector<OpSpan>& ops) {
  std::vector<TimeSpan> spans;
  for (const OpSpan& op : ops) spans.push_back(op.span);
  return find_outer_spans(spans);
}

std::optional<DeviceActivityKind> kind_of_activity(Activity activity) {
  switch (activity) {
    case Activity::kKernel: return DeviceActivityKind::kKernel;
    case Activity::kTransfer:
    case Activity::kCollective: return DeviceActivityKind::kTransfer;
    case Activity::kMessageKernel: return DeviceActivityKind::kMessage;
    case Activity::kCall:
    case Activity::kAutograd:
    case Activity::kGradientFlow:
    case Activity::kGradientEnd:
    case Activity::kSend:
    case Activity::kReceive:
    case Activity::kPendingReceive:
    case Activity::kStep:
    case Activity::kDataLoader:
    case Activity::kOptimizer:
    case Activity::kNamedLoading:
    case Activity::kNamedUpdate:
    case Activity::kBarrier:
    case Activity::kHostCollective:
    case Activity::kLaunch:
    case Activity::kCopyCall: break;
  }
  return {};
}

DeviceRecording find_device_recording(const ChromeEvents& events) {
  DeviceRecording recording;
  for (const ProfiledEvent& event : events.profiled) {
    const TimeSpan span{event.start, event.end};
    if (event.activity == Activity::kLaunch || event.activity == Activity::kCopyCall)
      recording.launches[event.number] = {span, event.activity == Activity::kLaunch};
    else if (const std::optional<DeviceActivityKind> kind = kind_of_activity(event.activity))
      recording.activities.push_back({span, event.number, event.thread, *kind});
  }
  return recording;
}

std::string describe_numbers(const RunningNumbers& numbers) {
  const std::int64_t missing = numbers.largest + 1 - numbers.count;
  const std::string what =
      missing > 0
          ? fmt::format("{} of {} events of the host are missing", missing, numbers.largest + 1)
          : std::string("some events of the host are given twice, and others are missing");
  return what + ", by their running numbers (\"Ev Idx\"): the file was filtered, cut or changed";
}

std::vector<std::string> describe_disorder(const std::vector<std::vector<HostEvent>>& threads) {
  std::int64_t disordered = 0;
  std::int64_t crossing = 0;
  for (const std::vector<HostEvent>& thread : threads) {
    disordered += count_disordered(thread);
    crossing += count_crossing(thread);
  }
  std::vector<std::string> found;
  if (disordered > 0)
    found.push_back(
        fmt::format("{} of the host contradicted the order of the running numbers (\"Ev Idx\"): "
                    "times were changed",
                    counted(disordered, "event")));
  if (crossing > 0)
    found.push_back(
        fmt::format("ops or calls ({}) begin within a call of their thread and end after it, which "
                    "no recording does: times in the file do not fit together",
                    crossing));
  return found;
}

}  // namespace

std::vector<std::string> find_contradictions(const ChromeEvents& events, const ProfiledOps& ops) {
  std::vector<std::string> found = describe_disorder(find_host_events(events, ops));
  if (!events.numbers.are_complete()) found.insert(found.begin(), describe_numbers(events.numbers));
  const auto host = find_outer_by_thread(events, is_on_host);
  if (const std::int64_t half = count_half_flows(events); half > 0)
    found.push_back(
        fmt::format("{} from a call to its gradient function lacked one end (\"fwdbwd\"): "
                    "events are missing",
                    counted(half, "flow")));
  const auto gradients = find_outer_by_thread(events, is_gradient);
  if (const std::int64_t loose = count_loose_flows(events, host, gradients); loose > 0)
    found.push_back(
        fmt::format("{} of flows (\"fwdbwd\") lay in no call or gradient function: those "
                    "are missing, or were renamed or moved",
                    counted(loose, "end")));
  if (ops.spans.empty()) return found;
  const std::vector<TimeSpan> steps = find_steps(ops.spans);
  const std::vector<OpSpan> sorted = sort_ops(ops.spans);
  if (const double stray = share_of_strays(events, host, steps, outline_ops(sorted));
      stray > kMaxStrayTime)
    found.push_back(fmt::format(
        "{:.1f} % of the time of forwards and gradient functions between the first and the last op "
        "of a step is in no op: annotations are missing, or do not enclose their ops",
        100 * stray));
  for (std::string& more : find_device_contradictions(find_device_recording(events), steps, sorted))
    found.push_back(std::move(more));
  return found;
}

}  // namespace bubblescope::traces
