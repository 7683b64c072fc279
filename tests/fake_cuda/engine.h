// Executes device work asynchronously: a thread runs tasks that are ready, one at a time and in any
// order, so that code that only works by luck fails.
//
// Task times are those of a device with room for all of them: a task begins when everything it
// waits for has ended, and lasts as long as its work took the thread, or as long as it has to spin.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::tests::fake_cuda {

struct Spin {
  Nanos nanos = 0;
  const volatile std::uint32_t* stop = nullptr;  ///< ends the spin when not 0; may be null
};

struct Task {
  std::string name;
  std::function<void()> work = {};  ///< may be empty
  std::optional<Spin> spin = {};
  std::int64_t bytes = 0;                                  ///< copied or cleared
  std::function<void(Nanos begin, Nanos end)> ended = {};  ///< gets its times; may be empty
};

struct PendingTask;
using Ticket = std::shared_ptr<PendingTask>;

/// Starts a task when all of `after` have ended; null tickets count as ended.
Ticket start(Task task, std::int32_t device, const std::vector<Ticket>& after);

/// A null ticket counts as ended.
bool has_ended(const Ticket& ticket);

/// When an ended task ended, on the host's monotonic clock.
Nanos end_of(const Ticket& ticket);

/// Blocks until all have ended. Refuses a wait that would never end, and names the call.
void await(const std::vector<Ticket>& tickets, const std::string& call);
void await_device(std::int32_t device, const std::string& call);

}  // namespace bubblescope::tests::fake_cuda
