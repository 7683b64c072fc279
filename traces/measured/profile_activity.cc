// Looks up activities by time.
#include "traces/measured/profile_activity.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

namespace bubblescope::traces {

namespace {

/// A stream continues within this time after the work of another stream that it waits for.
constexpr Nanos kMaxWake = 100'000;

bool starts_before(const ProfiledEvent& event, Nanos time) { return event.start < time; }

/// Returns the start of the first event in [from, before).
std::optional<Nanos> first_start(const std::vector<ProfiledEvent>& events, Nanos from,
                                 Nanos before) {
  const auto found = std::lower_bound(events.begin(), events.end(), from, starts_before);
  if (found == events.end() || found->start >= before) return {};
  return found->start;
}

/// Returns the stream with the most time of kernels; nullopt without any.
std::optional<std::uint32_t> find_computing_stream(const std::vector<ProfiledEvent>& events) {
  std::map<std::uint32_t, Nanos> times;
  for (const ProfiledEvent& event : events)
    if (event.activity == Activity::kKernel) times[event.thread] += event.end - event.start;
  const auto busiest = std::max_element(
      times.begin(), times.end(),
      [](const auto& left, const auto& right) { return left.second < right.second; });
  return busiest == times.end() ? std::nullopt : std::optional(busiest->first);
}

/// Returns the span from the first to the last event that is chosen.
template <class IsChosen>
std::optional<TimeSpan> span_of(const std::vector<ProfiledEvent>& events, IsChosen is_chosen) {
  std::optional<TimeSpan> span;
  for (const ProfiledEvent& event : events) {
    if (!is_chosen(event)) continue;
    if (!span) span = TimeSpan{event.start, event.end};
    widen(*span, event);
  }
  return span;
}

/// Whether an op has ended only when this event beside its stream has.
bool computes_op(const ProfiledEvent& event) {
  return event.activity == Activity::kKernel || event.group == CollectiveGroup::kOfOp;
}

}  // namespace

ProfileActivity::ProfileActivity(const ChromeEvents& events)
    : computing_(events.threads.size()),
      posts_(events.threads.size()),
      streams_(events.threads.size()) {
  for (const ProfiledEvent& event : events.profiled) {
    has_sends_ = has_sends_ || event.activity == Activity::kSend;
    has_receives_ = has_receives_ || event.activity == Activity::kReceive ||
                    event.activity == Activity::kPendingReceive;
    switch (event.activity) {
      case Activity::kAutograd: gradients_.push_back(event); [[fallthrough]];
      case Activity::kCall: computing_[event.thread].push_back(event); break;
      case Activity::kSend:
      case Activity::kReceive: posts_[event.thread].push_back(event); break;
      case Activity::kPendingReceive: receives_.push_back(event); break;
      case Activity::kLaunch:
      case Activity::kCopyCall: launches_.push_back(event); break;
      case Activity::kKernel: streams_[event.thread].push_back(event); [[fallthrough]];
      case Activity::kTransfer:
      case Activity::kCollective:
      case Activity::kMessageKernel: kernels_[event.number].push_back(event); break;
      case Activity::kGradientFlow:
      case Activity::kGradientEnd:
      case Activity::kStep:
      case Activity::kDataLoader:
      case Activity::kOptimizer:
      case Activity::kNamedLoading:
      case Activity::kNamedUpdate:
      case Activity::kHostCollective:
      case Activity::kBarrier: break;
    }
  }
  for (Events& of_thread : computing_) sort_by_start(of_thread);
  for (Events& of_thread : posts_) sort_by_start(of_thread);
  for (Events& stream : streams_) sort_by_start(stream);
  sort_by_start(gradients_);
  sort_by_start(launches_);
  std::stable_sort(
      receives_.begin(), receives_.end(),
      [](const ProfiledEvent& left, const ProfiledEvent& right) { return left.end < right.end; });
  for (const ProfiledEvent& receive : receives_) receive_ends_.push_back(receive.end);
  has_linked_kernels_ =
      std::any_of(launches_.begin(), launches_.end(),
                  [&](const ProfiledEvent& launch) { return kernels_.contains(launch.number); });
}

template <class Visit>
void ProfileActivity::for_each_launched(const TimeSpan& range, Visit visit) const {
  auto launch = std::lower_bound(launches_.begin(), launches_.end(), range.start, starts_before);
  for (; launch != launches_.end() && launch->start <= range.end; ++launch)
    if (const auto found = kernels_.find(launch->number); found != kernels_.end())
      for (const ProfiledEvent& event : found->second) visit(*launch, event);
}

std::vector<ProfiledEvent> ProfileActivity::find_launched(const TimeSpan& range,
                                                          bool messages) const {
  std::vector<ProfiledEvent> events;
  for_each_launched(range, [&](const ProfiledEvent&, const ProfiledEvent& event) {
    if ((event.activity == Activity::kMessageKernel) == messages) events.push_back(event);
  });
  return events;
}

Nanos ProfileActivity::find_end_before(std::uint32_t stream, Nanos start) const {
  const Events& kernels = streams_[stream];
  const auto next = std::lower_bound(kernels.begin(), kernels.end(), start, starts_before);
  return next == kernels.begin() ? std::numeric_limits<Nanos>::min() : std::prev(next)->end;
}

std::optional<TimeSpan> ProfileActivity::find_kernels(const TimeSpan& range) const {
  std::vector<ProfiledEvent> events = find_launched(range, false);
  const std::optional<std::uint32_t> stream = find_computing_stream(events);
  if (!stream) return span_of(events, [](const ProfiledEvent&) { return true; });
  TimeSpan span =
      *span_of(events, [&](const ProfiledEvent& event) { return event.thread == *stream; });
  const Nanos free_from = find_end_before(*stream, span.start);
  std::sort(
      events.begin(), events.end(),
      [](const ProfiledEvent& left, const ProfiledEvent& right) { return left.end > right.end; });
  for (const ProfiledEvent& event : events) {
    const bool is_awaited = event.end <= span.start && event.end + kMaxWake >= span.start;
    if (is_awaited)
      span.start = std::clamp(event.start, std::min(free_from, span.start), span.start);
    if (computes_op(event)) span.end = std::max(span.end, event.end);
  }
  return span;
}

std::optional<Nanos> ProfileActivity::find_next_start(Nanos launched_from) const {
  auto launch = std::lower_bound(launches_.begin(), launches_.end(), launched_from, starts_before);
  for (; launch != launches_.end(); ++launch) {
    const auto found = kernels_.find(launch->number);
    if (found == kernels_.end()) continue;
    for (const ProfiledEvent& event : found->second)
      if (event.activity == Activity::kKernel) return event.start;
  }
  return std::nullopt;
}

std::optional<Nanos> ProfileActivity::find_first_launch(const TimeSpan& range) const {
  std::optional<Nanos> first;
  for_each_launched(range, [&](const ProfiledEvent& launch, const ProfiledEvent& event) {
    if (!first && event.activity != Activity::kMessageKernel) first = launch.start;
  });
  return first;
}

std::optional<Nanos> ProfileActivity::find_awaited_collective(const TimeSpan& range,
                                                              Nanos start) const {
  std::optional<Nanos> last;
  for_each_launched(range, [&](const ProfiledEvent&, const ProfiledEvent& event) {
    const bool is_awaited = event.end <= start && event.end + kMaxWake >= start;
    if (is_awaited && event.activity == Activity::kCollective)
      last = std::max(last.value_or(event.end), event.end);
  });
  return last;
}

std::optional<TimeSpan> ProfileActivity::find_message_kernels(const TimeSpan& range) const {
  return span_of(find_launched(range, true), [](const ProfiledEvent&) { return true; });
}

Nanos ProfileActivity::sum_kernels(const TimeSpan& range) const {
  Nanos sum = 0;
  for_each_launched(range, [&](const ProfiledEvent&, const ProfiledEvent& event) {
    sum += event.end - event.start;
  });
  return sum;
}

std::optional<Nanos> ProfileActivity::find_first_gradient(Nanos from, Nanos before) const {
  return first_start(gradients_, from, before);
}

std::optional<Nanos> ProfileActivity::find_first_computation(std::uint32_t thread, Nanos from,
                                                             Nanos before) const {
  const std::optional<Nanos> own = first_start(computing_[thread], from, before);
  const std::optional<Nanos> gradient = find_first_gradient(from, before);
  if (!own || !gradient) return own ? own : gradient;
  return std::min(*own, *gradient);
}

std::optional<Nanos> ProfileActivity::find_last_computation_end(std::uint32_t thread, Nanos from,
                                                                Nanos before) const {
  std::optional<Nanos> last;
  for (const Events* events : {&computing_[thread], &gradients_}) {
    auto event = std::lower_bound(events->begin(), events->end(), from, starts_before);
    for (; event != events->end() && event->start < before; ++event)
      last = std::max(last.value_or(event->end), event->end);
  }
  return last;
}

Nanos ProfileActivity::find_waiting_end(Nanos from, Nanos first) const {
  // Where the backend does not show when receives complete, waiting looks like any other gap.
  if (receive_ends_.empty()) return first;
  const auto later = std::upper_bound(receive_ends_.begin(), receive_ends_.end(), first);
  return later == receive_ends_.begin() ? from : std::max(from, *std::prev(later));
}

Nanos ProfileActivity::find_waiting_start(std::uint32_t thread, Nanos from, Nanos until) const {
  Nanos start = from;
  for (const Events* events : {&computing_[thread], &posts_[thread]}) {
    auto event = std::lower_bound(events->begin(), events->end(), from, starts_before);
    for (; event != events->end() && event->start < until; ++event)
      if (event->end <= until) start = std::max(start, event->end);
  }
  return start;
}

bool ProfileActivity::is_computing(std::uint32_t thread, Nanos from, Nanos time) const {
  for (const Events* events : {&computing_[thread], &gradients_}) {
    auto event = std::lower_bound(events->begin(), events->end(), from, starts_before);
    for (; event != events->end() && event->start < time; ++event)
      if (event->end > time) return true;
  }
  return false;
}

std::optional<Nanos> ProfileActivity::find_wait_within(const TimeSpan& range,
                                                       std::uint32_t thread) const {
  const auto ends_after = [](Nanos time, const ProfiledEvent& receive) {
    return time < receive.end;
  };
  auto receive = std::upper_bound(receives_.begin(), receives_.end(), range.start, ends_after);
  std::optional<Nanos> last;
  for (; receive != receives_.end() && receive->end < range.end; ++receive)
    if (receive->start <= range.start && !is_computing(thread, range.start, receive->end) &&
        find_first_computation(thread, receive->end, range.end))
      last = receive->end;
  return last;
}

TimeSpan ProfileActivity::cut_computation(const TimeSpan& range, std::uint32_t thread,
                                          Nanos first) const {
  const Nanos last = std::min(range.end, *find_last_computation_end(thread, first, range.end));
  const std::optional<Nanos> post = first_start(posts_[thread], last, range.end);
  return {find_waiting_end(range.start, first), std::max(last, post.value_or(range.end))};
}

std::optional<TimeSpan> ProfileActivity::find_computation(const TimeSpan& range,
                                                          std::uint32_t thread) const {
  const Nanos from = find_wait_within(range, thread).value_or(range.start);
  const std::optional<Nanos> first = find_first_computation(thread, from, range.end);
  if (first) return cut_computation(range, thread, *first);
  if (receive_ends_.empty()) return {};
  return TimeSpan{find_waiting_end(range.start, range.end), range.end};
}

std::optional<std::pair<TimeSpan, TimeSpan>> ProfileActivity::split_pair(
    const TimeSpan& range, std::uint32_t thread) const {
  const std::optional<Nanos> gradient = find_first_gradient(range.start, range.end);
  if (!gradient) return {};
  // The receive that precedes the backward also ends within this range.
  const std::optional<Nanos> first = find_first_computation(thread, range.start, *gradient);
  if (!first) return {};
  const TimeSpan forward = cut_computation({range.start, *gradient}, thread, *first);
  const Nanos forward_end =
      std::min(*gradient, *find_last_computation_end(thread, forward.start, *gradient));
  const Nanos backward_start = find_waiting_end(forward_end, *gradient);
  return std::pair(TimeSpan{forward.start, std::min(forward_end, backward_start)},
                   TimeSpan{backward_start, range.end});
}

}  // namespace bubblescope::traces
