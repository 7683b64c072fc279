// Walks along the launches of a process.
#include "traces/measured/nsys_ops.h"

#include <algorithm>

#include "traces/measured/op_extent.h"

namespace bubblescope::traces {

namespace {

bool starts_before(const CudaCall& launch, Nanos time) { return launch.start < time; }

}  // namespace

NsysProcess::NsysProcess(const NsysRecording& recording, std::int64_t process) {
  static const std::vector<CudaCall> none;
  const auto launches = recording.launches.find(process);
  launches_ = launches == recording.launches.end() ? &none : &launches->second;
  const auto activities = recording.activities.find(process);
  if (activities != recording.activities.end()) activities_ = &activities->second;
}

template <class IsChosen>
std::optional<TimeSpan> NsysProcess::find_extent(const TimeSpan& range, IsChosen is_chosen) const {
  if (!has_activities()) return {};
  OpExtent extent;
  auto launch = std::lower_bound(launches_->begin(), launches_->end(), range.start, starts_before);
  for (; launch != launches_->end() && launch->start <= range.end; ++launch) {
    const auto found = activities_->find(launch->correlation);
    if (found == activities_->end() || !is_chosen(*launch, found->second)) continue;
    const NsysActivity& activity = found->second;
    extent.add({activity.start, activity.end}, activity.stream, activity.is_transfer);
  }
  return extent.find();
}

std::optional<TimeSpan> NsysProcess::find_messages(const TimeSpan& range) const {
  return find_extent(
      range, [](const CudaCall&, const NsysActivity& activity) { return activity.is_message; });
}

std::optional<TimeSpan> NsysProcess::find_work(const TimeSpan& range, LaunchedBy by,
                                               std::int64_t thread) const {
  return find_extent(range, [&](const CudaCall& launch, const NsysActivity& activity) {
    const bool counts =
        by == LaunchedBy::kAll || (launch.thread == thread) == (by == LaunchedBy::kOwn);
    return counts && !activity.is_message;
  });
}

std::optional<Nanos> NsysProcess::first_launch_by_others(const TimeSpan& range,
                                                         std::int64_t thread) const {
  if (!has_activities()) return {};
  auto launch = std::lower_bound(launches_->begin(), launches_->end(), range.start, starts_before);
  for (; launch != launches_->end() && launch->start <= range.end; ++launch)
    if (launch->thread != thread && activities_->contains(launch->correlation))
      return launch->start;
  return {};
}

DeviceRecording NsysProcess::record() const {
  DeviceRecording recording;
  if (!has_activities()) return recording;
  for (const CudaCall& call : *launches_)
    recording.launches[call.correlation] = {{call.start, call.start}, call.launches_kernel};
  for (const auto& [correlation, activity] : *activities_) {
    const DeviceActivityKind kind = activity.is_message ? DeviceActivityKind::kMessage
                                    : activity.is_transfer || activity.is_graph
                                        ? DeviceActivityKind::kTransfer
                                        : DeviceActivityKind::kKernel;
    recording.activities.push_back(
        {{activity.start, activity.end}, correlation, activity.stream, kind});
  }
  return recording;
}

}  // namespace bubblescope::traces
