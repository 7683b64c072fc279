// Walks along the launches of every step.
#include "traces/measured/nsys_works.h"

#include <algorithm>
#include <map>
#include <string>

#include "traces/measured/step_extents.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

std::vector<ObservedWork> find_nsys_works(const NsysRecording& recording, std::int64_t process,
                                          std::span<const StepRange> marks,
                                          std::span<const ObservedOp> ops) {
  std::vector<ObservedWork> found;
  const auto calls = recording.launches.find(process);
  const auto works = recording.works.find(process);
  if (ops.empty() || calls == recording.launches.end() || works == recording.works.end())
    return found;
  const std::map<std::int64_t, TimeSpan> extents =
      find_step_extents(ops, [](const ObservedOp& op) { return op.mark; });
  for (const StepRange& mark : marks) {
    const auto extent = extents.find(mark.number);
    if (extent == extents.end()) continue;
    auto call =
        std::lower_bound(calls->second.begin(), calls->second.end(), mark.host.start,
                         [](const CudaCall& each, Nanos time) { return each.start < time; });
    for (; call != calls->second.end() && call->start < mark.host.end; ++call) {
      const auto launched = works->second.find(call->correlation);
      if (launched == works->second.end() || launched->second.is_message) continue;
      const DeviceWork& work = launched->second;
      if (work.start >= extent->second.start && work.end <= extent->second.end) continue;
      found.push_back({std::string(work.collective ? name_of(*work.collective) : "other kernels"),
                       ops.front().recorder, 0, mark.number, false, work.start, work.end});
    }
  }
  return found;
}

}  // namespace bubblescope::traces
