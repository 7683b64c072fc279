// The simulated devices: as many H200s as BUBBLESCOPE_FAKE_CUDA_DEVICES says, or one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/fake_cuda/calls.h"

namespace bubblescope::tests::fake_cuda {

inline constexpr unsigned int kMultiprocessors = 132;
inline constexpr std::size_t kDeviceBytes = std::size_t{2} << 30;  ///< of host memory

std::int32_t device_count();

/// The current device of this thread.
std::int32_t current_device();

}  // namespace bubblescope::tests::fake_cuda
