// Profiler records of device activity, as the CUDA module passes them to the program.
#pragma once

#include <cstdint>

extern "C" {

/// The kind of a record.
enum : std::int32_t {
  kBubblescopeKernel,
  kBubblescopeCopy,
  kBubblescopeClear,       ///< a memory set
  kBubblescopeLaunchedBy,  ///< not an activity: links a correlation id to the tag under which it
                           ///< was enqueued
};

struct BubblescopeActivity {
  std::int32_t kind;
  std::int32_t device;
  std::uint32_t stream;       ///< as numbered by the profiler
  std::uint32_t correlation;  ///< the same in all records of one launch
  std::uint64_t tag;          ///< only for kBubblescopeLaunchedBy
  std::int64_t start;         ///< in nanoseconds on the profiler's clock; 0: unknown
  std::int64_t end;
  std::int64_t bytes;  ///< copied or cleared
  const char* name;    ///< mangled name of a kernel; null for anything else
};

/// Receives one record, which is valid only during the call.
using BubblescopeTakeActivity = void (*)(void* to, const BubblescopeActivity* activity);

}  // extern "C"
