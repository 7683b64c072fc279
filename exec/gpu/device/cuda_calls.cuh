// The parts of the module's call table, and its error handling.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "exec/gpu/calls.h"

namespace bubblescope::exec {

/// A stream and its device, which must be current for launches.
struct CudaStream {
  cudaStream_t stream;
  std::int32_t device;
};

/// Stores a message until this thread's next error and returns it.
const char* store_error(const std::string& error);

/// Returns null for success, or "cudaMalloc: out of memory (cudaErrorMemoryAllocation)" for the
/// name or text of a call.
const char* check(cudaError_t status, const char* call);

/// False after abandon(): nothing may be released any more.
bool may_release();

// Each file adds its calls to the table.
void add_device_calls(BubblescopeGpu& calls);
void add_stream_calls(BubblescopeGpu& calls);
void add_partition_calls(BubblescopeGpu& calls);
void add_kernel_calls(BubblescopeGpu& calls);
void add_multiply_calls(BubblescopeGpu& calls);
void add_label_call(BubblescopeGpu& calls);
void add_activity_calls(BubblescopeGpu& calls);

}  // namespace bubblescope::exec

/// Returns from the function with the error if the call fails.
#define BUBBLESCOPE_CUDA(call)                                                       \
  do {                                                                               \
    if (const char* const error = ::bubblescope::exec::check((call), #call)) return error; \
  } while (false)
