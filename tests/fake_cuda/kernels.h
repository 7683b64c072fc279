// Our kernels by the names and types under which their device code is registered, run on the host.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/fake_cuda/engine.h"

namespace bubblescope::fake_cuda {

struct LaunchShape {
  unsigned int blocks = 0;
  unsigned int threads = 0;
  std::int32_t device = 0;
};

/// Takes a launch's arguments now, and makes what runs them later.
using BindKernel = std::function<Task(void** arguments, const LaunchShape& shape)>;

/// By "norm_kernel<float>(float*, float const*, float const*, int)". Refuses what it does not know.
const BindKernel& find_kernel(const std::string& signature);

}  // namespace bubblescope::fake_cuda
