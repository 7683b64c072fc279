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
  const auto works = recording.works.find(process);
  if (works != recording.works.end()) works_ = &works->second;
}

std::optional<TimeSpan> NsysProcess::find_works(const TimeSpan& range, bool messages, LaunchedBy by,
                                                std::int64_t thread) const {
  if (!has_works()) return {};
  OpExtent extent;
  auto launch = std::lower_bound(launches_->begin(), launches_->end(), range.start, starts_before);
  for (; launch != launches_->end() && launch->start <= range.end; ++launch) {
    if (by != LaunchedBy::kAll && (launch->thread == thread) != (by == LaunchedBy::kOwn)) continue;
    const auto found = works_->find(launch->correlation);
    if (found == works_->end()) continue;
    const DeviceWork& work = found->second;
    if (work.is_message != messages) continue;
    extent.add({work.start, work.end}, work.stream, work.is_transfer);
  }
  return extent.find();
}

std::optional<Nanos> NsysProcess::first_launch_by_others(const TimeSpan& range,
                                                         std::int64_t thread) const {
  if (!has_works()) return {};
  auto launch = std::lower_bound(launches_->begin(), launches_->end(), range.start, starts_before);
  for (; launch != launches_->end() && launch->start <= range.end; ++launch)
    if (launch->thread != thread && works_->contains(launch->correlation)) return launch->start;
  return {};
}

DeviceRecording NsysProcess::record() const {
  DeviceRecording recording;
  if (!has_works()) return recording;
  for (const CudaCall& call : *launches_)
    recording.launches[call.correlation] = {{call.start, call.start}, call.launches_kernel};
  for (const auto& [correlation, work] : *works_) {
    const DeviceWorkKind kind = work.is_message                     ? DeviceWorkKind::kMessage
                                : work.is_transfer || work.is_graph ? DeviceWorkKind::kTransfer
                                                                    : DeviceWorkKind::kKernel;
    recording.works.push_back({{work.start, work.end}, correlation, work.stream, kind});
  }
  return recording;
}

}  // namespace bubblescope::traces
