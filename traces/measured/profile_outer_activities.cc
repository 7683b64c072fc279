// Collects activities by what launched them.
#include "traces/measured/profile_outer_activities.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "traces/measured/step_extents.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

class ActivityFinder {
 public:
  ActivityFinder(const ChromeEvents& events, const StepMarks& marks,
                 const std::vector<ObservedOp>& ops, std::int32_t replica)
      : events_(events),
        marks_(marks),
        extents_(find_extents(ops, [](const ObservedOp& op) { return std::optional(op.step); })),
        replica_(replica) {
    for (const ObservedOp& op : ops)
      if (is_compute(op.op.kind)) ops_.push_back({op.start, op.end});
    sort_by_start(ops_);
    for (const ProfiledEvent& event : events.profiled) {
      if (event.activity == Activity::kOptimizer) optimizers_.push_back({event.start, event.end});
      if (event.activity == Activity::kLaunch || event.activity == Activity::kCopyCall)
        launched_at_.emplace(event.number, event.start);
    }
    sort_by_start(optimizers_);
  }

  std::vector<ObservedActivity> find() && {
    for (const ProfiledEvent& mark : marks_.marks())
      activities_.push_back({.name = "ProfilerStep",
                             .replica = replica_,
                             .step = mark.number,
                             .is_whole_step = true,
                             .start = mark.start,
                             .end = mark.end});
    for (const ProfiledEvent& event : events_.profiled) {
      if (is_on_device(event.activity)) add_from_device(event);
      if (event.activity == Activity::kHostCollective)
        add(name_of(event.collective), event, event.start);
      if (event.activity == Activity::kDataLoader) add(kLoadingData, event, event.start);
      if (event.activity == Activity::kNamedLoading && !contains_op(event))
        add(kLoadingData, event, event.start);
    }
    add_host_optimizers();
    return std::move(activities_);
  }

 private:
  void add_from_device(const ProfiledEvent& event) {
    if (event.activity == Activity::kMessageKernel) return;
    const auto launch = launched_at_.find(event.number);
    if (launch == launched_at_.end()) return;
    const bool optimizes = lies_in(optimizers_, launch->second);
    has_device_optimizer_ = has_device_optimizer_ || optimizes;
    const std::string_view name = event.activity == Activity::kCollective
                                      ? name_of(event.collective)
                                      : (optimizes ? kOptimizer : "other kernels");
    add(name, event, launch->second);
  }

  /// Adds what runs before the first or after the last op of its step. Without marks, steps follow
  /// from the ops of all ranks: everything outside of ops is added, without a step.
  void add(std::string_view name, const ProfiledEvent& event, Nanos launched) {
    if (marks_.marks().empty()) {
      if (lies_in(ops_, event.start)) return;
      activities_.push_back({.name = std::string(name),
                             .replica = replica_,
                             .start = event.start,
                             .end = event.end,
                             .has_step = false});
      return;
    }
    const std::optional<std::int64_t> step = marks_.step_at(launched);
    if (!step) return;
    const auto ops = extents_.find(*step);
    if (ops == extents_.end()) return;
    if (event.start >= ops->second.start && event.end <= ops->second.end) return;
    activities_.push_back({.name = std::string(name),
                           .replica = replica_,
                           .step = *step,
                           .start = event.start,
                           .end = event.end});
  }

  /// The host only launches an optimizer whose kernels are known.
  void add_host_optimizers() {
    if (has_device_optimizer_) return;
    for (const ProfiledEvent& event : events_.profiled)
      if (event.activity == Activity::kOptimizer ||
          (event.activity == Activity::kNamedUpdate && !contains_op(event)))
        add(kOptimizer, event, event.start);
  }

  /// A name may speak of a part of what its range holds: "forward, backward, optimizer".
  bool contains_op(const ProfiledEvent& event) const {
    const auto next =
        std::lower_bound(ops_.begin(), ops_.end(), event.start,
                         [](const TimeSpan& op, Nanos start) { return op.start < start; });
    return next != ops_.end() && next->start < event.end;
  }

  const ChromeEvents& events_;
  const StepMarks& marks_;
  std::map<std::int64_t, TimeSpan> extents_;  ///< by step
  std::int32_t replica_;
  std::vector<TimeSpan> ops_;                            ///< by start
  std::vector<TimeSpan> optimizers_;                     ///< calls, by start
  std::unordered_map<std::int64_t, Nanos> launched_at_;  ///< by correlation id
  bool has_device_optimizer_ = false;
  std::vector<ObservedActivity> activities_;
};

}  // namespace

std::vector<ObservedActivity> find_profile_outer_activities(const ChromeEvents& events,
                                                            const StepMarks& marks,
                                                            const std::vector<ObservedOp>& ops,
                                                            std::int32_t replica) {
  return ActivityFinder(events, marks, ops, replica).find();
}

}  // namespace bubblescope::traces
