// Walks along the launches of every step.
#include "traces/measured/nsys_outer_activities.h"

#include <algorithm>
#include <map>
#include <string>

#include "traces/measured/step_extents.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

std::vector<ObservedActivity> find_nsys_outer_activities(const NsysRecording& recording,
                                                         std::int64_t process,
                                                         std::span<const StepRange> marks,
                                                         std::span<const ObservedOp> ops) {
  std::vector<ObservedActivity> found;
  const auto calls = recording.launches.find(process);
  const auto activities = recording.activities.find(process);
  if (ops.empty() || calls == recording.launches.end() || activities == recording.activities.end())
    return found;
  const std::map<std::int64_t, TimeSpan> extents =
      find_extents(ops, [](const ObservedOp& op) { return op.mark; });
  for (const StepRange& mark : marks) {
    const auto extent = extents.find(mark.number);
    if (extent == extents.end()) continue;
    auto call =
        std::lower_bound(calls->second.begin(), calls->second.end(), mark.host.start,
                         [](const CudaCall& each, Nanos time) { return each.start < time; });
    for (; call != calls->second.end() && call->start < mark.host.end; ++call) {
      const auto launched = activities->second.find(call->correlation);
      if (launched == activities->second.end() || launched->second.is_message) continue;
      const NsysActivity& activity = launched->second;
      if (activity.start >= extent->second.start && activity.end <= extent->second.end) continue;
      found.push_back({.name = std::string(activity.collective ? name_of(*activity.collective)
                                                               : "other kernels"),
                       .recorder = ops.front().recorder,
                       .step = mark.number,
                       .start = activity.start,
                       .end = activity.end});
    }
  }
  return found;
}

}  // namespace bubblescope::traces
