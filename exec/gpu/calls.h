// What the program and its CUDA module, bubblescope_cuda.so, know of each other. The module alone
// is built with CUDA, so that only who runs on GPUs loads it; tests put a table of their own here.
//
// Every call returns null, or an error in words that stays until the thread's next call. Handles
// are the module's. Matrices lie row by row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/gpu/activity_record.h"
#include "exec/gpu/orders.h"

extern "C" {

struct BubblescopeDevice {
  char name[256];
  std::int32_t multiprocessors;
  std::int32_t capability;      ///< 90 for 9.0
  std::int32_t driver_version;  ///< 13000 for 13.0
  std::int64_t memory_bytes;
  char bus[32];  ///< its address, "0000:3b:00.0"; empty: it has none
};

struct BubblescopeGpu {
  const char* (*count_devices)(std::int32_t* count);
  const char* (*describe_device)(std::int32_t device, BubblescopeDevice* description);
  const char* (*link_devices)(std::int32_t from,
                              std::int32_t to);      ///< peer access, if there is any
  const char* (*await_device)(std::int32_t device);  ///< until all its work has ended

  void (*abandon)();  ///< work hangs on a device: from now on nothing is released or awaited
  const char* (*allocate)(std::int32_t device, std::size_t bytes, void** memory);
  void (*release_memory)(void* memory);
  /// Memory of the host that copies on streams reach at full speed.
  const char* (*allocate_on_host)(std::size_t bytes, void** memory);
  void (*release_on_host)(void* memory);
  const char* (*upload)(void* to, const void* from, std::size_t bytes);  ///< and waits
  const char* (*download)(void* to, const void* from, std::size_t bytes);
  /// A word of the host that devices read and write.
  const char* (*create_flag)(std::uint32_t** on_host, const std::uint32_t** on_device);
  void (*release_flag)(std::uint32_t* on_host);

  /// Cuts a device into parts of the same number of multiprocessors, one handle each.
  const char* (*split)(std::int32_t device, std::int32_t multiprocessors, std::int32_t parts,
                       void** partitions);
  void (*release_partition)(void* partition);
  /// On a partition, or on the whole device where it is null.
  const char* (*create_stream)(std::int32_t device, void* partition, void** stream);
  void (*release_stream)(void* stream);
  const char* (*create_event)(std::int32_t device, std::int32_t timed, void** event);
  void (*release_event)(void* event);
  const char* (*record)(void* event, void* stream);
  /// The same while a graph is captured: the event is recorded at each launch of the graph.
  const char* (*record_in_graph)(void* event, void* stream);
  const char* (*wait)(void* stream, void* event);
  const char* (*query)(void* event, std::int32_t* ended);
  const char* (*elapsed)(void* from, void* to, double* nanos);
  const char* (*begin_capture)(void* stream);
  const char* (*end_capture)(void* stream, void** graph);
  const char* (*launch_graph)(void* graph, void* stream);
  void (*release_graph)(void* graph);

  /// Names what this thread enqueues from now on, for profilers; null: nothing more. No errors.
  void (*label)(const char* text);

  // Records of what devices really do. No profiler is touched before start_activity(), after which
  // it stays on.
  const char* (*start_activity)();
  /// What this thread enqueues from now on has this tag, which is not 0; 0: it has none any more.
  const char* (*tag)(std::uint64_t tag);
  /// Gives all records of what has ended and was not read before, in any order, and how many were
  /// lost.
  const char* (*read_activity)(BubblescopeTakeActivity take, void* to, std::int64_t* lost);

  const char* (*copy)(void* to, const void* from, std::size_t bytes, void* stream);
  const char* (*clear)(void* memory, std::size_t bytes, void* stream);
  const char* (*spin)(const BubblescopeSpin* spin, void* stream);
  const char* (*launch)(const BubblescopeLaunch* launch, void* stream);
  /// Matrix products of one rank, told how many multiprocessors it has.
  const char* (*create_multiplier)(std::int32_t device, std::int32_t multiprocessors, void** made);
  void (*release_multiplier)(void* multiplier);
  const char* (*multiply)(void* multiplier, const BubblescopeProduct* product, void* stream);
  /// Whether there is a way to make a product with its epilogue. Decides how, and enqueues nothing.
  const char* (*can_multiply)(void* multiplier, const BubblescopeProduct* product,
                              std::int32_t* can);
};

/// The module's table, or null and an error in words.
const BubblescopeGpu* bubblescope_open_gpu(const char** error);

}  // extern "C"
