// Looks up activities by time.
#include "traces/measured/profile_activity.h"

#include <algorithm>
#include <utility>

namespace bubblescope::traces {

namespace {

bool starts_before(const ProfiledEvent& event, Nanos time) { return event.start < time; }

void sort_by_start(std::vector<ProfiledEvent>& events) {
  std::stable_sort(events.begin(), events.end(),
                   [](const ProfiledEvent& left, const ProfiledEvent& right) {
                     return left.start < right.start;
                   });
}

/// The start of the first event in [from, before).
std::optional<Nanos> first_start(const std::vector<ProfiledEvent>& events, Nanos from,
                                 Nanos before) {
  const auto found = std::lower_bound(events.begin(), events.end(), from, starts_before);
  if (found == events.end() || found->start >= before) return {};
  return found->start;
}

}  // namespace

void OpExtent::add(const TimeSpan& span, std::int64_t stream, bool is_transfer) {
  auto found = std::find_if(streams_.begin(), streams_.end(),
                            [=](const StreamExtent& one) { return one.stream == stream; });
  if (found == streams_.end()) found = streams_.insert(streams_.end(), {stream, span});
  found->span.start = std::min(found->span.start, span.start);
  found->span.end = std::max(found->span.end, span.end);
  found->computes = found->computes || !is_transfer;
}

std::optional<TimeSpan> OpExtent::find() const {
  const bool any_computes = std::any_of(streams_.begin(), streams_.end(),
                                        [](const StreamExtent& one) { return one.computes; });
  std::optional<TimeSpan> extent;
  for (const StreamExtent& one : streams_) {
    if (any_computes && !one.computes) continue;
    if (!extent) extent = one.span;
    extent->start = std::min(extent->start, one.span.start);
    extent->end = std::max(extent->end, one.span.end);
  }
  return extent;
}

ProfileActivity::ProfileActivity(const ChromeEvents& events)
    : computing_(events.threads.size()), posts_(events.threads.size()) {
  for (const ProfiledEvent& event : events.profiled) {
    switch (event.activity) {
      case Activity::kAutograd: gradients_.push_back(event); [[fallthrough]];
      case Activity::kCall: computing_[event.thread].push_back(event); break;
      case Activity::kSend:
      case Activity::kReceive: posts_[event.thread].push_back(event); break;
      case Activity::kPendingReceive: receive_ends_.push_back(event.end); break;
      case Activity::kLaunch:
      case Activity::kCopyCall: launches_.push_back(event); break;
      case Activity::kKernel:
      case Activity::kTransfer:
      case Activity::kMessageKernel:
        kernels_[event.number].push_back({{event.start, event.end}, event.thread, event.activity});
        break;
      case Activity::kGradientFlow:
      case Activity::kGradientEnd:
      case Activity::kStep:
      case Activity::kOutside:
      case Activity::kBarrier: break;
    }
  }
  for (Events& of_thread : computing_) sort_by_start(of_thread);
  for (Events& of_thread : posts_) sort_by_start(of_thread);
  sort_by_start(gradients_);
  sort_by_start(launches_);
  std::sort(receive_ends_.begin(), receive_ends_.end());
  has_linked_kernels_ =
      std::any_of(launches_.begin(), launches_.end(),
                  [&](const ProfiledEvent& launch) { return kernels_.contains(launch.number); });
}

std::optional<TimeSpan> ProfileActivity::find_kernels(const TimeSpan& range, bool messages) const {
  OpExtent extent;
  auto launch = std::lower_bound(launches_.begin(), launches_.end(), range.start, starts_before);
  for (; launch != launches_.end() && launch->start <= range.end; ++launch) {
    const auto found = kernels_.find(launch->number);
    if (found == kernels_.end()) continue;
    for (const Kernel& kernel : found->second)
      if ((kernel.activity == Activity::kMessageKernel) == messages)
        extent.add(kernel.span, kernel.stream, kernel.activity == Activity::kTransfer);
  }
  return extent.find();
}

Nanos ProfileActivity::sum_kernels(const TimeSpan& range) const {
  Nanos sum = 0;
  auto launch = std::lower_bound(launches_.begin(), launches_.end(), range.start, starts_before);
  for (; launch != launches_.end() && launch->start <= range.end; ++launch)
    if (const auto found = kernels_.find(launch->number); found != kernels_.end())
      for (const Kernel& kernel : found->second) sum += kernel.span.end - kernel.span.start;
  return sum;
}

std::optional<Nanos> ProfileActivity::first_gradient(Nanos from, Nanos before) const {
  return first_start(gradients_, from, before);
}

std::optional<Nanos> ProfileActivity::find_first_computation(std::uint32_t thread, Nanos from,
                                                             Nanos before) const {
  const std::optional<Nanos> own = first_start(computing_[thread], from, before);
  const std::optional<Nanos> gradient = first_gradient(from, before);
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

std::optional<TimeSpan> ProfileActivity::find_computation(const TimeSpan& range,
                                                          std::uint32_t thread) const {
  const std::optional<Nanos> first = find_first_computation(thread, range.start, range.end);
  if (!first && receive_ends_.empty()) return {};
  if (!first) return TimeSpan{find_waiting_end(range.start, range.end), range.end};
  const Nanos last = std::min(range.end, *find_last_computation_end(thread, *first, range.end));
  const std::optional<Nanos> post = first_start(posts_[thread], last, range.end);
  return TimeSpan{find_waiting_end(range.start, *first), std::max(last, post.value_or(range.end))};
}

std::optional<std::pair<TimeSpan, TimeSpan>> ProfileActivity::split_pair(
    const TimeSpan& range, std::uint32_t thread) const {
  const std::optional<Nanos> gradient = first_gradient(range.start, range.end);
  if (!gradient) return {};
  const std::optional<TimeSpan> forward = find_computation({range.start, *gradient}, thread);
  if (!forward || forward->start >= *gradient) return {};
  const Nanos forward_end =
      std::min(*gradient, *find_last_computation_end(thread, forward->start, *gradient));
  const Nanos backward_start = find_waiting_end(forward_end, *gradient);
  return std::pair(TimeSpan{forward->start, std::min(forward_end, backward_start)},
                   TimeSpan{backward_start, range.end});
}

}  // namespace bubblescope::traces
