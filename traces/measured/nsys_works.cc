// Walks along the launches of every step.
#include "traces/measured/nsys_works.h"

#include <algorithm>
#include <map>
#include <string>

#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

/// From the first op to the last, by the mark of their step.
std::map<std::int64_t, TimeSpan> find_extents(std::span<const ObservedOp> ops) {
  std::map<std::int64_t, TimeSpan> extents;
  for (const ObservedOp& observed : ops) {
    if (!observed.mark || !is_compute(observed.op.kind)) continue;
    const auto [found, is_new] =
        extents.emplace(*observed.mark, TimeSpan{observed.start, observed.end});
    widen(found->second, observed);
  }
  return extents;
}

}  // namespace

std::vector<ObservedWork> find_nsys_works(const NsysRecording& recording, std::int64_t process,
                                          std::span<const StepRange> marks,
                                          std::span<const ObservedOp> ops) {
  std::vector<ObservedWork> found;
  const auto calls = recording.launches.find(process);
  const auto works = recording.works.find(process);
  if (ops.empty() || calls == recording.launches.end() || works == recording.works.end())
    return found;
  const std::map<std::int64_t, TimeSpan> extents = find_extents(ops);
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
