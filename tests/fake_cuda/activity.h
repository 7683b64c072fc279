// Activity records of the simulated devices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fake_cuda/streams.h"

namespace bubblescope::tests::fake_cuda {

/// One task with work, and the external ids of the thread that enqueued it.
struct Activity {
  std::string name;
  Nanos begin = 0;
  Nanos end = 0;
  std::int64_t bytes = 0;
  std::int32_t device = 0;
  std::int64_t stream = 0;
  std::uint32_t correlation = 0;
  std::vector<std::uint64_t> external_ids;  ///< the innermost id, or none
};

/// Records all tasks from now on, except in captures.
void begin_to_observe();

/// The stack of ids of this thread.
std::vector<std::uint64_t>& external_ids();

/// Makes the task record its times when it ends, once recording has begun.
void observe(Task& task, const Stream& stream);

/// The tasks that have ended since the last call.
std::vector<Activity> take_activities();

}  // namespace bubblescope::tests::fake_cuda
