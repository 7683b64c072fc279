// The interface between the program and its CUDA module, bubblescope_cuda.so. Only the module is
// built with CUDA, so that only runs on GPUs load it; tests pass a table of their own.
//
// Every call returns null on success, or an error message that is valid until the thread's next
// call. The module owns the handles. Matrices are row-major.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/gpu/activity_record.h"
#include "exec/gpu/kernels.h"
#include "exec/gpu/requests.h"

extern "C" {

struct BubblescopeDevice {
  char name[256];
  std::int32_t multiprocessors;
  std::int32_t capability;      ///< 90 for 9.0
  std::int32_t driver_version;  ///< 13000 for 13.0
  std::int64_t memory_bytes;
  char bus[32];  ///< PCI address, "0000:3b:00.0"; empty: unknown
};

struct BubblescopeGpu {
  const char* (*count_devices)(std::int32_t* count);
  const char* (*describe_device)(std::int32_t device, BubblescopeDevice* description);
  const char* (*link_devices)(std::int32_t from,
                              std::int32_t to);      ///< enables peer access if possible
  const char* (*await_device)(std::int32_t device);  ///< waits until all its work has ended

  void (*abandon)();  ///< a device hangs: from now on nothing is released or awaited
  const char* (*allocate)(std::int32_t device, std::size_t bytes, void** memory);
  void (*release_memory)(void* memory);
  /// Allocates pinned host memory, which copies on streams reach at full speed.
  const char* (*allocate_on_host)(std::size_t bytes, void** memory);
  void (*release_on_host)(void* memory);
  const char* (*upload)(void* to, const void* from, std::size_t bytes);  ///< synchronous
  const char* (*download)(void* to, const void* from, std::size_t bytes);
  /// Allocates a host word that devices can read and write.
  const char* (*create_flag)(std::uint32_t** on_host, const std::uint32_t** on_device);
  void (*release_flag)(std::uint32_t* on_host);

  /// How many partitions with at least this many multiprocessors a device can be split into.
  const char* (*count_partitions)(std::int32_t device, std::int32_t multiprocessors,
                                  std::int32_t* parts);
  /// Splits a device into partitions with the same number of multiprocessors, one handle each.
  const char* (*split)(std::int32_t device, std::int32_t multiprocessors, std::int32_t parts,
                       void** partitions);
  void (*release_partition)(void* partition);
  /// Creates a stream on a partition, or on the whole device if `partition` is null.
  const char* (*create_stream)(std::int32_t device, void* partition, void** stream);
  void (*release_stream)(void* stream);
  const char* (*create_event)(std::int32_t device, std::int32_t timed, void** event);
  void (*release_event)(void* event);
  const char* (*record)(void* event, void* stream);
  /// Like record() during a graph capture: every launch of the graph records the event.
  const char* (*record_in_graph)(void* event, void* stream);
  const char* (*wait)(void* stream, void* event);
  const char* (*query)(void* event, std::int32_t* ended);
  const char* (*elapsed)(void* from, void* to, double* nanos);
  const char* (*begin_capture)(void* stream);
  const char* (*end_capture)(void* stream, void** graph);
  const char* (*launch_graph)(void* graph, void* stream);
  void (*release_graph)(void* graph);

  /// Names, for profilers, all that this thread enqueues from now on; null ends it. Never fails.
  void (*label)(const char* text);

  // Activity records of devices. The profiler is loaded by start_activity() and then stays on.
  const char* (*start_activity)();
  /// Tags all that this thread enqueues from now on; 0 removes the tag.
  const char* (*tag)(std::uint64_t tag);
  /// Passes on every record of finished work that was not read before, in any order, and the number
  /// of lost records.
  const char* (*read_activity)(BubblescopeTakeActivity take, void* to, std::int64_t* lost);

  const char* (*copy)(void* to, const void* from, std::size_t bytes, void* stream);
  const char* (*clear)(void* memory, std::size_t bytes, void* stream);
  const char* (*spin)(const BubblescopeSpin* spin, void* stream);
  const char* (*launch)(const bubblescope::exec::KernelLaunch* launch, void* stream);
  /// A cuBLASLt handle for one rank. The library gets the rank's number of multiprocessors for all
  /// GEMMs if `sets_sm_count` is not 0, and otherwise only for those that do not start without.
  const char* (*create_blas_handle)(std::int32_t device, std::int32_t multiprocessors,
                                    std::int32_t sets_sm_count, void** handle);
  void (*release_blas_handle)(void* blas_handle);
  std::int64_t (*blas_version)(void* blas_handle);  ///< 130100 for 13.1.0; never fails
  const char* (*multiply)(void* blas_handle, const BubblescopeGemm* gemm, void* stream);
  /// Tells whether the library supports a GEMM with its epilogue. Chooses the algorithm, and
  /// enqueues nothing.
  const char* (*can_multiply)(void* blas_handle, const BubblescopeGemm* gemm, std::int32_t* can);
};

/// Returns the module's table, or null and an error message.
const BubblescopeGpu* bubblescope_open_gpu(const char** error);

}  // extern "C"
