// A GPU for tests: it does on the host, at once, what it is told, and keeps a time of its own, so
// that its events tell when everything would have run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/gpu/calls.h"
#include "tests/support/device_clock.h"

namespace bubblescope {

/// What its work takes, beside what spinning kernels are told.
struct FakeTimes {
  double nanos_per_product = 0;  ///< of a multiplication, on one multiprocessor
  double nanos_per_entry = 0;    ///< of a kernel's matrix, on one multiprocessor
  double nanos_per_copy = 0;     ///< whatever its size
  double nanos_per_byte = 0;     ///< of a copy, on top of that
  SlowdownLaw products;          ///< how products and spinning kernels are slowed by other ranks
  SlowdownLaw kernels;           ///< and other kernels
  SlowdownLaw copies;            ///< and copies, by 1, 2, ... of these; copies slow nobody
};

struct FakeGpu {
  std::vector<BubblescopeDevice> devices;
  std::string fails_at;         ///< the name of a call that fails; empty: none does
  std::int64_t handles = 0;     ///< that were created and not released
  std::int64_t bytes = 0;       ///< of memory, the same
  std::int64_t host_bytes = 0;  ///< of the host's memory, that were ever taken
  std::int64_t launches = 0;
  std::int64_t graph_launches = 0;
  std::vector<std::int32_t> partition_sizes;
  bool was_abandoned = false;
  bool knows_epilogues = true;      ///< of products
  std::vector<std::string> labels;  ///< in the order in which they were begun
  std::int64_t open_labels = 0;     ///< that were not ended
  FakeTimes times;
};

/// Devices of this many multiprocessors, without anything on them; forgets those before.
FakeGpu& reset_fake_gpu(std::int32_t devices, std::int32_t multiprocessors = 132);

/// Its calls. Kernels and products are done by exec/training in float32; in bfloat16 they only take
/// their time.
const BubblescopeGpu& fake_gpu_calls();

}  // namespace bubblescope
