// The GPU of this machine, for tests that need one.
#pragma once

#include <vector>

#include "exec/gpu/host/gpu.h"
#include "exec/training/matrix.h"

namespace bubblescope::tests {

/// Null if there is no GPU; prints the reason.
const BubblescopeGpu* find_real_gpu();

/// Skips the test if there is no GPU.
#define REQUIRE_GPU() \
  if (::bubblescope::tests::find_real_gpu() == nullptr) GTEST_SKIP() << "no GPU on this machine"

/// Memory of device 0 with these values; bfloat16 memory holds them rounded.
struct DeviceArray {
  exec::GpuHandle memory;
  std::size_t count = 0;
  BubblescopeDtype dtype = kBubblescopeFloat32;
};
DeviceArray upload(const exec::GpuRuntime& gpu, const std::vector<float>& values,
                   BubblescopeDtype dtype);
std::vector<float> download(const exec::GpuRuntime& gpu, const DeviceArray& array);

/// The values after storing them.
std::vector<float> stored(std::vector<float> values, BubblescopeDtype dtype);

/// Values from -2 to 2, the same for the same seed.
std::vector<float> draw_values(std::size_t count, std::uint64_t seed);

/// |made - expected| / |expected| over all entries (Euclidean); infinite if an entry is NaN.
double relative_difference(const std::vector<float>& actual, const std::vector<float>& expected);

}  // namespace bubblescope::tests
