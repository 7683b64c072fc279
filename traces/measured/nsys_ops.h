// The device time of host ranges in an Nsight Systems recording, and what contradicts them.
//
// A range is the time in which the host launches an op; the op itself runs from the first to the
// last of its kernels. A kernel belongs to the range of its *process* during which it was launched,
// because the autograd engine launches backward kernels from a thread of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "traces/measured/nsys_recording.h"
#include "traces/measured/profile_activity.h"

namespace bubblescope::traces {

/// The threads whose launches count.
enum class LaunchedBy : std::uint8_t { kAll, kOwn, kOthers };

/// One process of a recording.
class NsysProcess {
 public:
  NsysProcess(const NsysRecording& recording, std::int64_t process);

  bool has_works() const { return works_ != nullptr; }

  /// From the first to the last kernel launched within `range`; nullopt where there is none.
  /// `thread` is the range's own.
  std::optional<TimeSpan> find_works(const TimeSpan& range, bool messages,
                                     LaunchedBy by = LaunchedBy::kAll, std::int64_t thread = 0);

  /// The first launch within `range` by a thread other than `thread`.
  std::optional<Nanos> first_launch_by_others(const TimeSpan& range, std::int64_t thread) const;

  /// Describes, in whole sentences, what the file lacks or contradicts: launches without a kernel
  /// within ranges, kernels that began before their launch, and kernels between the first and the
  /// last of `ranges` (by start, the ops of whole steps) that were launched in none of them.
  std::vector<std::string> find_doubts(const std::vector<std::vector<TimeSpan>>& steps,
                                       const std::string& where) const;

 private:
  const std::vector<CudaCall>* launches_ = nullptr;
  const std::unordered_map<std::int64_t, DeviceWork>* works_ = nullptr;
  std::size_t without_kernel_ = 0;
  std::size_t before_launch_ = 0;
};

}  // namespace bubblescope::traces
