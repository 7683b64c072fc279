// The parts of the module's table, and how its errors are told.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "exec/gpu/calls.h"

namespace bubblescope {

/// A stream, and the device that must be current for launches on it.
struct CudaStream {
  cudaStream_t stream;
  std::int32_t device;
};

/// Keeps a text until this thread's next error, and gives it as a call's answer.
const char* tell(const std::string& error);

/// "cudaMalloc: out of memory (cudaErrorMemoryAllocation)" of a call's name or text; null for
/// success.
const char* check(cudaError_t status, const char* call);

/// False after abandon(): nothing is released any more.
bool may_release();

// What each file adds to the table.
void add_device_calls(BubblescopeGpu& calls);
void add_stream_calls(BubblescopeGpu& calls);
void add_partition_calls(BubblescopeGpu& calls);
void add_kernel_calls(BubblescopeGpu& calls);
void add_multiply_calls(BubblescopeGpu& calls);
void add_label_call(BubblescopeGpu& calls);
void add_activity_calls(BubblescopeGpu& calls);

}  // namespace bubblescope

/// Leaves the function with the error of a call that failed.
#define BUBBLESCOPE_CUDA(call)                                                       \
  do {                                                                               \
    if (const char* const error = ::bubblescope::check((call), #call)) return error; \
  } while (false)
