// Finds ops in one pass over the events of a step in order of time.
#include "traces/measured/unannotated_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <span>

namespace bubblescope::traces {

namespace {

/// Profiles of older releases have whole microseconds.
constexpr Nanos kRounding = 1'000;
/// Between an op and the send of its result, the runtime takes less than this.
constexpr Nanos kMaxSendDelay = 1'000'000;

bool matters(Activity activity) {
  constexpr std::array kKinds{Activity::kCall,      Activity::kAutograd, Activity::kGradientFlow,
                              Activity::kSend,      Activity::kReceive,  Activity::kDataLoader,
                              Activity::kOptimizer, Activity::kBarrier};
  return std::find(kKinds.begin(), kKinds.end(), activity) != kKinds.end();
}

bool is_earlier(const ProfiledEvent* event, Nanos time) { return event->start < time; }

/// The thread that posts the messages also runs the forwards.
std::uint32_t find_main_thread(std::span<const ProfiledEvent* const> events) {
  std::map<std::uint32_t, std::size_t> posts;
  for (const ProfiledEvent* event : events)
    if (event->activity == Activity::kSend || event->activity == Activity::kReceive)
      ++posts[event->thread];
  const auto busiest = std::max_element(
      posts.begin(), posts.end(),
      [](const auto& left, const auto& right) { return left.second < right.second; });
  return busiest == posts.end() ? 0 : busiest->first;
}

class Walk {
 public:
  UnannotatedStep run(std::span<const ProfiledEvent* const> events) && {
    const std::uint32_t main = find_main_thread(events);
    for (const ProfiledEvent* event : events)
      if (event->thread == main || event->activity == Activity::kAutograd) take(*event);
    close();
    return std::move(step_);
  }

 private:
  /// Takes an event that matters.
  void take(const ProfiledEvent& event) {
    const Activity activity = event.activity;
    if (activity == Activity::kAutograd) return take_gradient(event);
    if (activity == Activity::kCall) return take_call(event);
    if (activity == Activity::kGradientFlow) {
      has_flow_ = has_flow_ || is_in_call(event.start);
      return;
    }
    if (activity != Activity::kSend && activity != Activity::kReceive) return pass(event);
    ++(activity == Activity::kSend ? step_.sends : step_.receives);
    post(event);
  }

  /// Nothing within such a call is of an op: a barrier reduces a tensor of its own.
  void pass(const ProfiledEvent& event) {
    close();
    passed_until_ = std::max(passed_until_, event.end);
  }

  /// The thread posts a message when its op has computed.
  void post(const ProfiledEvent& event) {
    if (is_open_ && event.start + kRounding < span_.end) ++step_.posts.early;
    if (is_open_ && event.activity == Activity::kSend && event.start > span_.end + kMaxSendDelay) {
      ++step_.posts.late;
      step_.posts.late_time += event.start - span_.end;
    }
    pass(event);
  }

  void take_gradient(const ProfiledEvent& event) {
    if (has_flow_ && !is_backward_) close();
    if (!is_open_ || !is_backward_) {
      // Calls before it without a gradient function do not belong to this op.
      is_open_ = is_backward_ = true;
      span_ = {event.start, event.end};
    }
    span_.end = std::max(span_.end, event.end);
  }

  /// Calls within gradient functions are part of the backward, as is the time between two of them.
  void take_call(const ProfiledEvent& event) {
    if (event.end <= passed_until_) return;
    if (is_backward_ && event.start < span_.end) return;
    if (is_backward_) {
      after_.push_back(event);
      return;
    }
    open_forward(event);
  }

  void open_forward(const ProfiledEvent& event) {
    if (!is_open_) span_ = {event.start, event.end};
    is_open_ = true;
    span_.end = std::max(span_.end, event.end);
  }

  /// A gradient function that is created after a backward begins the next forward.
  bool is_in_call(Nanos start) {
    if (!is_backward_) return is_open_ && start <= span_.end;
    if (after_.empty()) return false;
    std::vector<ProfiledEvent> calls = std::move(after_);
    close();
    for (const ProfiledEvent& call : calls) open_forward(call);
    return true;
  }

  void close() {
    if (is_open_ && (is_backward_ || has_flow_)) {
      std::int32_t& count = is_backward_ ? step_.backwards : step_.forwards;
      step_.posts.computing += span_.end - span_.start;
      step_.ops.push_back({is_backward_ ? OpKind::kBackward : OpKind::kForward, count++, span_});
    }
    is_open_ = is_backward_ = has_flow_ = false;
    after_.clear();
  }

  UnannotatedStep step_;
  bool is_open_ = false;
  bool is_backward_ = false;
  bool has_flow_ = false;  ///< of a forward: whether it creates a gradient function
  TimeSpan span_;
  Nanos passed_until_ = std::numeric_limits<Nanos>::min();  ///< the end of calls that are of no op
  std::vector<ProfiledEvent> after_;  ///< calls after a backward, which may begin a forward
};

}  // namespace

void UnannotatedSends::add(const UnannotatedSends& more) {
  computing += more.computing;
  early += more.early;
  late += more.late;
  late_time += more.late_time;
}

std::vector<std::string> describe_sends(const UnannotatedSends& sends) {
  std::vector<std::string> doubts;
  if (sends.early > 0)
    doubts.push_back(fmt::format(
        "{} message(s) are posted while their thread still computes, by the ranges of its ops: "
        "ranges are too long, or ops send messages of their own",
        sends.early));
  if (sends.late_time > sends.computing / 100)
    doubts.push_back(fmt::format(
        "{} message(s) are sent long after the computation before them has ended, together {}: "
        "gradient functions or calls are missing, or were longer",
        sends.late, to_text(sends.late_time)));
  return doubts;
}

UnannotatedOps::UnannotatedOps(const ChromeEvents& events) {
  for (const ProfiledEvent& event : events.profiled)
    if (matters(event.activity)) events_.push_back(&event);
  // A flow belongs to the call that begins with it, and an outer call precedes its inner ones.
  std::stable_sort(events_.begin(), events_.end(),
                   [](const ProfiledEvent* left, const ProfiledEvent* right) {
                     if (left->start != right->start) return left->start < right->start;
                     return left->end > right->end;
                   });
}

UnannotatedStep UnannotatedOps::find(const TimeSpan& step) const {
  const auto first = std::lower_bound(events_.begin(), events_.end(), step.start, is_earlier);
  const auto end = std::lower_bound(first, events_.end(), step.end, is_earlier);
  return Walk().run({first, end});
}

}  // namespace bubblescope::traces
