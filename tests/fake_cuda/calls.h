// What every call of the CUDA runtime that is made of threads begins and ends with: is it told to
// fail, has the device failed, what is its caller's last error.
//
// BUBBLESCOPE_FAKE_CUDA_FAIL=cudaMalloc:3 lets the third cudaMalloc of the process fail (0: none),
// BUBBLESCOPE_FAKE_CUDA_CALLS=FILE has the number of all calls, by name, written at the end.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <mutex>
#include <string>

#include "tests/fake_cuda/refuse.h"

namespace bubblescope::fake_cuda {

/// Counts a call; true: it is told to fail.
bool counts_as_failure(const std::string& name);

/// What a call that is told to fail answers.
cudaError_t failure_of(const std::string& name);

/// What ends something does so before it fails, or a leak would be no fault of who called it.
bool releases(const std::string& name);

/// One at a time.
std::mutex& runtime_mutex();

/// Of this thread.
cudaError_t& last_error();

/// The error from which a device never recovers; cudaSuccess: none.
cudaError_t device_error();

/// Answers for a call with what `body` returns, unless it is to fail.
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

/// At the end of the process, asks what is left of something; an empty answer: nothing.
void ask_for_leaks(std::function<std::string()> leaks);

}  // namespace bubblescope::fake_cuda
