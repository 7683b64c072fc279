// What a profiler has to tell of devices, as the CUDA module hands it to the program.
#pragma once

#include <cstdint>

extern "C" {

/// What a record is of.
enum : std::int32_t {
  kBubblescopeKernel,
  kBubblescopeCopy,
  kBubblescopeClear,       ///< of memory
  kBubblescopeLaunchedBy,  ///< no work: under which tag what has the same correlation was enqueued
};

struct BubblescopeActivity {
  std::int32_t kind;
  std::int32_t device;
  std::uint32_t stream;       ///< as the profiler counts them
  std::uint32_t correlation;  ///< the same in all records of one launch
  std::uint64_t tag;          ///< of kBubblescopeLaunchedBy
  std::int64_t start;         ///< in nanoseconds, on the profiler's clock; 0: not known
  std::int64_t end;
  std::int64_t bytes;  ///< of a copy, or that were cleared
  const char* name;    ///< of a kernel, as it was compiled; else null
};

/// Is given one record, which is gone when it returns.
using BubblescopeTakeActivity = void (*)(void* to, const BubblescopeActivity* activity);

}  // extern "C"
