// Runs our kernels on the host, by the names and types under which their device code is registered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/fake_cuda/engine.h"

namespace bubblescope::tests::fake_cuda {

struct LaunchShape {
  unsigned int blocks = 0;
  unsigned int threads = 0;
  std::int32_t device = 0;
  std::size_t shared_bytes = 0;  ///< beside what the kernel itself declares
};

/// Copies the arguments of a launch and returns the task that runs it.
using BindKernel = std::function<Task(void** arguments, const LaunchShape& shape)>;

/// Finds a kernel by "norm_kernel<float>(float*, float const*, float const*, int)"; refuses unknown
/// ones.
const BindKernel& find_kernel(const std::string& signature);

}  // namespace bubblescope::tests::fake_cuda
