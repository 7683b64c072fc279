// What devices do while the host goes on: a thread takes the tasks that nothing holds back, one at
// a time and in any order, so that what only works by luck does not.
//
// Each task has the times that a device with room for all would give it: it begins when all it
// waits for has ended, and takes what its work took the thread, or what it was told to spin.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::fake_cuda {

struct Spin {
  Nanos nanos = 0;
  const volatile std::uint32_t* stop = nullptr;  ///< ends it where it is not 0; may be null
};

struct Task {
  std::string name;
  std::function<void()> work = {};  ///< may be empty
  std::optional<Spin> spin = {};
  std::int64_t bytes = 0;                                  ///< of a copy, or that are cleared
  std::function<void(Nanos begin, Nanos end)> ended = {};  ///< is told when it ran; may be empty
};

struct PendingTask;
using Ticket = std::shared_ptr<PendingTask>;

/// Begins when all of `after` have ended; null ones count as ended.
Ticket start(Task task, std::int32_t device, const std::vector<Ticket>& after);

/// Null: yes.
bool has_ended(const Ticket& ticket);

/// Of one that has ended, on the host's monotonic clock.
Nanos end_of(const Ticket& ticket);

/// Blocks. A wait without end is refused, with the name of the call that waits.
void await(const std::vector<Ticket>& tickets, const std::string& call);
void await_device(std::int32_t device, const std::string& call);

}  // namespace bubblescope::fake_cuda
