// The common part of all calls of the simulated CUDA runtime: injected failures, device errors and
// the caller's last error.
//
// BUBBLESCOPE_FAKE_CUDA_FAIL=cudaMalloc:3 makes the third cudaMalloc of the process fail (0: none).
// BUBBLESCOPE_FAKE_CUDA_CALLS=FILE writes the number of calls, by name, at exit.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <mutex>
#include <string>

#include "tests/fake_cuda/refuse.h"

namespace bubblescope::tests::fake_cuda {

/// Counts a call and returns whether it is made to fail.
bool counts_as_failure(const std::string& name);

/// The error of a call that is made to fail.
cudaError_t failure_of(const std::string& name);

/// Whether the call releases something. Such a call does so even if it is made to fail, because the
/// caller could not prevent the leak.
bool releases(const std::string& name);

/// Held during every call.
std::mutex& runtime_mutex();

/// The last error of this thread.
cudaError_t& last_error();

/// An error from which the device does not recover; cudaSuccess if there is none.
cudaError_t device_error();

/// Runs `body` and returns its result, unless the call is made to fail.
template <class Body>
cudaError_t call(const std::string& name, const Body& body) {
  const std::lock_guard lock(runtime_mutex());
  const bool fails = counts_as_failure(name);
  cudaError_t status = device_error();
  if (status == cudaSuccess && (!fails || releases(name))) status = body();
  if (fails) status = failure_of(name);
  if (status != cudaSuccess) last_error() = status;
  return status;
}

/// Registers a function that runs at exit and describes leaks; an empty text means that there are
/// none.
void ask_for_leaks(std::function<std::string()> leaks);

}  // namespace bubblescope::tests::fake_cuda
