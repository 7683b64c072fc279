// A simulated GPU for tests. It computes everything at once on the host, and has a clock of its
// own, so that events tell when the work would have run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/gpu/calls.h"
#include "tests/support/device_clock.h"

namespace bubblescope::tests {

/// The durations of work other than spinning kernels.
struct FakeTimes {
  double nanos_per_multiplication = 0;  ///< per multiplication, on one multiprocessor
  double nanos_per_entry = 0;           ///< per entry of a kernel's matrix, on one multiprocessor
  double nanos_per_copy = 0;            ///< for any size
  double nanos_per_byte = 0;            ///< per byte of a copy, in addition
  SlowdownLaw gemms;                    ///< how other ranks slow GEMMs and spinning kernels,
  SlowdownLaw kernels;                  ///< other kernels,
  SlowdownLaw copies;  ///< and copies, by 1, 2, ... busy ranks; copies slow nothing
};

struct FakeGpu {
  std::vector<BubblescopeDevice> devices;
  std::string fails_at;         ///< name of the call that fails; empty: none
  std::int64_t handles = 0;     ///< created and not released
  std::int64_t bytes = 0;       ///< of device memory, allocated and not released
  std::int64_t host_bytes = 0;  ///< of host memory, ever allocated
  std::int64_t launches = 0;
  std::int64_t graph_launches = 0;
  std::vector<std::int32_t> partition_sizes;
  /// Groups of multiprocessors within which a device can be split; one unless a test says more.
  std::vector<std::int32_t> clusters;
  bool gates_expire = false;        ///< what waits for a host flag ends at once
  std::int64_t uploaded_bytes = 0;  ///< by synchronous copies
  std::int64_t downloaded_bytes = 0;
  bool was_abandoned = false;
  bool knows_epilogues = true;      ///< whether GEMMs support epilogues
  std::vector<std::string> labels;  ///< in the order in which they began
  std::int64_t open_labels = 0;     ///< begun and not ended
  FakeTimes times;
};

/// Replaces all devices by fresh ones with this many multiprocessors each.
FakeGpu& reset_fake_gpu(std::int32_t devices, std::int32_t multiprocessors = 132);

/// The clock of these devices.
DeviceClock& fake_gpu_clock();

/// The calls of the simulated GPU. Kernels and GEMMs are computed by exec/training in float32; in
/// bfloat16 they only take their time.
const BubblescopeGpu& fake_gpu_calls();

}  // namespace bubblescope::tests
