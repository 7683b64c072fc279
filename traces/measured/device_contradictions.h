// Finds contradictions between launches and kernels, in recordings of any profiler.
//
//   cudaLaunchKernel ---> kernel         a launch has a kernel, and a kernel a launch before it
//   |kernel||kernel|   |kernel|          kernels of a stream do not overlap, and begin as soon as
//                                        the device is free
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/ir/op.h"
#include "traces/measured/profile_activity.h"

namespace bubblescope::traces {

/// Profilers of older releases write whole microseconds, at both ends of a span.
inline constexpr Nanos kProfileRounding = 2'000;
/// The share of the time of kernels or gradient functions that may lie in no op: clipping and
/// scaling gradients.
inline constexpr double kMaxStrayTime = 0.01;

/// The host's range of an op.
struct OpSpan {
  TimeSpan span;
  std::uint32_t thread = 0;
  std::int64_t number = kNoNumber;  ///< its running number
  std::int64_t step = 0;
  std::int64_t op_class = 0;  ///< equal for ops of the same stage and kind
};

inline std::int64_t op_class_of(const Op& op) {
  return std::int64_t{op.stage} * kOpKinds + static_cast<std::int64_t>(op.kind);
}

/// A call that starts work on a device.
struct DeviceLaunch {
  TimeSpan call;
  bool needs_kernel = false;  ///< it launches a kernel; copies may do without
  std::int32_t kernels = 0;   ///< filled in
};

enum class DeviceActivityKind : std::uint8_t { kKernel, kTransfer, kMessage };

struct RecordedActivity {
  TimeSpan span;
  std::int64_t correlation = 0;
  std::int64_t stream = 0;
  DeviceActivityKind kind = DeviceActivityKind::kKernel;  ///< a transfer is a collective or a copy
};

/// One process's use of its device.
struct DeviceRecording {
  std::unordered_map<std::int64_t, DeviceLaunch> launches;  ///< by correlation id
  std::vector<RecordedActivity> activities;
};

/// Returns the contradictions as whole sentences. `steps` are the spans from a step's first op to
/// its last, `ops` are sorted by start. Nothing contradicts activities without any launch.
std::vector<std::string> find_device_contradictions(DeviceRecording recording,
                                                    const std::vector<TimeSpan>& steps,
                                                    const std::vector<OpSpan>& ops);

/// Returns for every step the span from its first op to its last.
std::vector<TimeSpan> find_steps(const std::vector<OpSpan>& ops);

/// The spans that lie in no other one; `spans` are sorted by start.
std::vector<TimeSpan> find_outer_spans(const std::vector<TimeSpan>& spans);

}  // namespace bubblescope::traces
