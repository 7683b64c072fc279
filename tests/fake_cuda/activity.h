// What a profiler is told of the devices that are made of threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fake_cuda/streams.h"

namespace bubblescope::fake_cuda {

/// One task that did something, and under which ids of its thread it was put on a stream.
struct Activity {
  std::string name;
  Nanos begin = 0;
  Nanos end = 0;
  std::int64_t bytes = 0;
  std::int32_t device = 0;
  std::int64_t stream = 0;
  std::uint32_t correlation = 0;
  std::vector<std::uint64_t> external_ids;  ///< the last one that was pushed, or none
};

/// From now on, whatever is not captured.
void begin_to_observe();

/// Of this thread.
std::vector<std::uint64_t>& external_ids();

/// Lets a task be noted when it ends, where devices are observed.
void observe(Task& task, const Stream& stream);

/// What has ended since the last call.
std::vector<Activity> take_activities();

}  // namespace bubblescope::fake_cuda
