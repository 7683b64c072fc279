// A recording of Nsight Systems, from its sqlite export: host ranges, launches, device work.
//
// Tables and columns depend on what was recorded and on the release (2021 to 2025 were seen), so
// each one is optional:
//   NVTX_EVENTS                    start, end, text or textId, globalTid
//   CUPTI_ACTIVITY_KIND_RUNTIME    start, correlationId, globalTid, nameId
//   CUPTI_ACTIVITY_KIND_KERNEL     start, end, correlationId, globalPid, shortName, deviceId,
//                                  streamId; likewise MEMCPY, MEMSET
//   StringIds                      id, value
//   TARGET_INFO_SESSION_START_TIME utcEpochNs, to which all times are relative
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/ir/units.h"
#include "traces/measured/profiled_event.h"

namespace bubblescope::traces {

/// An NVTX range of a thread.
struct HostRange {
  std::int64_t thread = 0;
  Nanos start = 0;
  Nanos end = 0;
  std::uint32_t name = 0;  ///< index into NsysRecording::names
};

/// A call into CUDA.
struct CudaCall {
  std::int64_t thread = 0;
  Nanos start = 0;
  std::int64_t correlation = 0;
  bool launches_kernel = false;  ///< by its name; false where calls have none
};

/// A kernel, a copy or a memset.
struct NsysActivity {
  Nanos start = 0;
  Nanos end = 0;
  bool is_message = false;   ///< NCCL's send and receive, which also run while they wait
  bool is_transfer = false;  ///< another collective, or a copy
  bool is_graph = false;     ///< several kernels of one launch
  /// The collective of NCCL, by its name; empty for all else.
  std::optional<CollectiveKind> collective = {};
  std::int64_t stream = 0;  ///< with the device
};

struct NsysRecording {
  std::vector<std::string> names;
  std::vector<HostRange> ranges;                           ///< by start, outer ones first
  std::map<std::int64_t, std::vector<CudaCall>> launches;  ///< [process], by start
  /// [process], by correlation id
  std::map<std::int64_t, std::unordered_map<std::int64_t, NsysActivity>> activities;
  std::size_t unclosed = 0;  ///< ranges without an end
};

/// The process of a thread: the low 24 bits of a globalTid are the thread.
inline std::int64_t process_of(std::int64_t global_tid) { return global_tid & ~0xffffff; }

/// Reads a file. Of the ranges, those whose names `keep` accepts are kept; it is asked once per
/// range. Throws Error.
NsysRecording read_nsys(const std::string& path,
                        const std::function<bool(std::string_view name)>& keep);

}  // namespace bubblescope::traces
