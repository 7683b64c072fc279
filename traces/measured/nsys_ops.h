// The device time of host ranges in an Nsight Systems recording.
//
// A range is the time in which the host launches an op; the op itself runs from the first to the
// last of its kernels (OpExtent). A kernel belongs to the range of its *process* during which it
// was launched, because the autograd engine launches backward kernels from a thread of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "traces/measured/device_contradictions.h"
#include "traces/measured/nsys_recording.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

/// The threads whose launches count.
enum class LaunchedBy : std::uint8_t { kAll, kOwn, kOthers };

/// One process of a recording.
class NsysProcess {
 public:
  NsysProcess(const NsysRecording& recording, std::int64_t process);

  bool has_activities() const { return activities_ != nullptr; }

  /// The extent of the message kernels launched within `range`; nullopt where there is none.
  std::optional<TimeSpan> find_messages(const TimeSpan& range) const;

  /// Returns the extent of all other activities that these threads launched within `range`;
  /// `thread` is the one of the range. nullopt if there are none.
  std::optional<TimeSpan> find_work(const TimeSpan& range, LaunchedBy by = LaunchedBy::kAll,
                                    std::int64_t thread = 0) const;

  /// Returns the first launch within `range` by a thread other than `thread`.
  std::optional<Nanos> first_launch_by_others(const TimeSpan& range, std::int64_t thread) const;

  /// The launches and kernels of the process.
  DeviceRecording record() const;

 private:
  /// Returns the extent of the activities within `range` that is_chosen(launch, activity).
  template <class IsChosen>
  std::optional<TimeSpan> find_extent(const TimeSpan& range, IsChosen is_chosen) const;

  const std::vector<CudaCall>* launches_ = nullptr;
  const std::unordered_map<std::int64_t, NsysActivity>* activities_ = nullptr;
};

}  // namespace bubblescope::traces
