// Checks launches and kernels.
#include "traces/measured/device_contradictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/quantile.h"
#include "traces/measured/time_span.h"
#include "traces/text/time_axis.h"

namespace bubblescope::traces {

namespace {

/// Clocks of host and device agree to a few microseconds.
constexpr Nanos kMaxClockError = 1'000'000;
/// With programmatic launches a kernel may begin while the one before it ends.
constexpr Nanos kMaxOverlap = 200'000;
/// A launched kernel begins within this time on a device that is free.
constexpr Nanos kMaxDelay = 20'000;
/// The share of the ops' time for which their device may be idle although work was launched, beyond
/// what is usual for ops of their kind.
constexpr double kMaxIdle = 0.01;
/// Idle time that is usual for a kind of op may be up to this share.
constexpr double kMaxUsuallyIdle = 0.1;

/// A kernel with the launch that led to it.
struct LaunchedActivity {
  RecordedActivity record;
  const DeviceLaunch* launch = nullptr;  ///< null where the file has none
};

/// How an op uses its device.
struct OpUse {
  Nanos all = 0;      ///< from its first kernel to its last
  Nanos idle = 0;     ///< without work that was launched
  Nanos longest = 0;  ///< of the idle times

  double share() const { return static_cast<double>(idle) / static_cast<double>(all); }
};

class DeviceCheck {
 public:
  DeviceCheck(DeviceRecording recording, const std::vector<TimeSpan>& steps,
              const std::vector<OpSpan>& ops)
      : steps_(steps), ops_(ops), launches_(std::move(recording.launches)) {
    if (launches_.empty()) return;
    for (const RecordedActivity& activity : recording.activities) add(activity);
    std::sort(activities_.begin(), activities_.end(),
              [](const LaunchedActivity& left, const LaunchedActivity& right) {
                return left.record.span.start < right.record.span.start;
              });
  }

  std::vector<std::string> find() {
    if (activities_.empty()) return {};
    check_pairs();
    check_times();
    check_idleness();
    check_strays();
    return std::move(found_);
  }

 private:
  void add(const RecordedActivity& activity) {
    const auto launch = launches_.find(activity.correlation);
    activities_.push_back({activity, launch == launches_.end() ? nullptr : &launch->second});
    if (launch != launches_.end()) ++launch->second.kernels;
  }

  void check_pairs() {
    const auto lacks_kernel = [&](const auto& entry) {
      const DeviceLaunch& launch = entry.second;
      return launch.needs_kernel && launch.kernels == 0 &&
             lies_in(steps_, launch.call.start, kProfileRounding);
    };
    // Kernels from before the recording have no launch, and precede all that it shows launched.
    const auto first =
        std::find_if(activities_.begin(), activities_.end(), [&](const LaunchedActivity& activity) {
          return activity.launch != nullptr &&
                 lies_in(steps_, activity.launch->call.start, kProfileRounding);
        });
    const auto lacks_launch = [](const LaunchedActivity& activity) {
      return activity.launch == nullptr;
    };
    if (const auto count = std::count_if(launches_.begin(), launches_.end(), lacks_kernel))
      found_.push_back(
          fmt::format("{} had no kernel in the file, so that ops may appear shorter than they were",
                      counted(count, "launch")));
    if (const auto count = std::count_if(first, activities_.end(), lacks_launch))
      found_.push_back(
          fmt::format("{} had no launch in the file, and ran in no op", counted(count, "kernel")));
  }

  /// Kernels that begin before they were launched, or before the one before them on their stream
  /// has ended. Those of one graph share its launch, and may run side by side.
  void check_times() {
    std::int64_t early = 0;
    std::int64_t overlapping = 0;
    std::unordered_map<std::int64_t, Nanos> ends;  // by stream
    for (const LaunchedActivity& activity : activities_) {
      const TimeSpan& span = activity.record.span;
      if (activity.launch != nullptr && span.start < activity.launch->call.start - kMaxClockError)
        ++early;
      const bool is_of_graph = activity.launch != nullptr && activity.launch->kernels > 1;
      if (activity.record.kind != DeviceActivityKind::kKernel || is_of_graph) continue;
      const auto [end, is_first] = ends.emplace(activity.record.stream, span.end);
      if (is_first) continue;
      if (span.start < end->second - kMaxOverlap) ++overlapping;
      end->second = std::max(end->second, span.end);
    }
    if (early > 0)
      found_.push_back(
          fmt::format("{} began before the launch: the file was changed, or its "
                      "clocks differ",
                      counted(early, "kernel")));
    if (overlapping > 0)
      found_.push_back(
          fmt::format("{} began before the previous one on the same stream had ended: "
                      "times in the file were changed",
                      counted(overlapping, "kernel")));
  }

  /// Within an op, a device is not idle while launched kernels wait for nothing. Ops of one kind
  /// and stage are idle for similar shares of their time, and none for long.
  void check_idleness() {
    Nanos unusual = 0;
    Nanos longest = 0;
    Nanos all = 0;
    for (const auto& [_, uses] : collect_uses()) {
      std::vector<double> shares;
      for (const OpUse& use : uses) shares.push_back(use.share());
      const double least = quantile(shares, 10);
      const double expected = least > kMaxUsuallyIdle ? 0 : least;
      for (const OpUse& use : uses) {
        unusual += std::max<Nanos>(
            0, use.idle - static_cast<Nanos>(expected * static_cast<double>(use.all)));
        longest = std::max(longest, use.longest);
        all += use.all;
      }
    }
    if (static_cast<double>(unusual) > kMaxIdle * static_cast<double>(all))
      found_.push_back(fmt::format(
          "within ops, launched kernels wait for {:.1f} % of the time on an idle device, once for "
          "{}: another process used the device (ranks that share one take turns), or kernels are "
          "missing or their times were changed",
          100.0 * static_cast<double>(unusual) / static_cast<double>(all), format_time(longest)));
  }

  /// Returns how every op uses its device, grouped by the op's class.
  std::map<std::int64_t, std::vector<OpUse>> collect_uses() const {
    std::vector<OpUse> uses(ops_.size());
    std::optional<Nanos> end;
    std::optional<std::size_t> last;
    for (const LaunchedActivity& activity : activities_) {
      const TimeSpan& span = activity.record.span;
      const std::optional<std::size_t> op =
          activity.launch == nullptr ? std::nullopt : find_op(activity.launch->call.start);
      if (op) {
        OpUse& use = uses[*op];
        if (end && last == op) {
          const Nanos ready = std::max(*end, activity.launch->call.end) + kMaxDelay;
          use.idle += std::max<Nanos>(0, span.start - ready);
          use.longest = std::max(use.longest, span.start - ready);
          use.all += std::max<Nanos>(0, span.start - *end);
        }
        use.all += std::max<Nanos>(0, span.end - std::max(span.start, end.value_or(span.start)));
        last = op;
      }
      end = std::max(end.value_or(span.end), span.end);
    }
    std::map<std::int64_t, std::vector<OpUse>> by_class;
    for (std::size_t at = 0; at < uses.size(); ++at)
      if (uses[at].all > 0) by_class[ops_[at].op_class].push_back(uses[at]);
    return by_class;
  }

  std::optional<std::size_t> find_op(Nanos time) const {
    const auto after =
        std::upper_bound(ops_.begin(), ops_.end(), time,
                         [](Nanos wanted, const OpSpan& op) { return wanted < op.span.start; });
    if (after == ops_.begin() || std::prev(after)->span.end < time) return {};
    return static_cast<std::size_t>(std::prev(after) - ops_.begin());
  }

  void check_strays() {
    Nanos inside = 0;
    Nanos stray = 0;
    for (const LaunchedActivity& activity : activities_) {
      if (activity.launch == nullptr || activity.record.kind != DeviceActivityKind::kKernel)
        continue;
      if (!lies_in(steps_, activity.launch->call.start, kProfileRounding)) continue;
      (find_op(activity.launch->call.start) ? inside : stray) +=
          activity.record.span.end - activity.record.span.start;
    }
    if (static_cast<double>(stray) > kMaxStrayTime * static_cast<double>(inside + stray))
      found_.push_back(fmt::format(
          "{:.1f} % of the kernels' time between the first and the last op of a step was launched "
          "in no op: annotations are missing, or do not enclose their launches",
          100.0 * static_cast<double>(stray) / static_cast<double>(inside + stray)));
  }

  const std::vector<TimeSpan>& steps_;
  const std::vector<OpSpan>& ops_;  ///< by start
  std::unordered_map<std::int64_t, DeviceLaunch> launches_;
  std::vector<LaunchedActivity> activities_;  ///< by start
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> find_device_contradictions(DeviceRecording recording,
                                                    const std::vector<TimeSpan>& steps,
                                                    const std::vector<OpSpan>& ops) {
  return DeviceCheck(std::move(recording), steps, ops).find();
}

std::vector<TimeSpan> find_steps(const std::vector<OpSpan>& ops) {
  std::map<std::int64_t, TimeSpan> steps;
  for (const OpSpan& op : ops) {
    widen(steps.emplace(op.step, op.span).first->second, op.span);
  }
  std::vector<TimeSpan> spans;
  for (const auto& [_, span] : steps) spans.push_back(span);
  return spans;
}

std::vector<TimeSpan> find_outer_spans(const std::vector<TimeSpan>& spans) {
  std::vector<TimeSpan> outer;
  for (const TimeSpan& span : spans)
    if (outer.empty() || span.end > outer.back().end) outer.push_back(span);
  return outer;
}

}  // namespace bubblescope::traces
