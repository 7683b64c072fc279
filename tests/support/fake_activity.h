// Activity records of the simulated GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/gpu/calls.h"
#include "tests/support/device_clock.h"

namespace bubblescope::tests {

/// Work on a stream, as the profiler reports it.
struct SeenWork {
  std::int32_t kind = kBubblescopeKernel;
  std::string name;
  std::size_t bytes = 0;
};

class FakeActivity {
 public:
  void start() { is_on_ = true; }
  void tag(std::uint64_t tag) { tag_ = tag; }

  /// Records that something is enqueued. Returns its index; empty if recording is off.
  std::optional<std::size_t> see(const SeenWork& work);

  /// Runs it between two marks of the stream's time.
  void run(std::optional<std::size_t> seen, std::size_t stream, DeviceClock& clock,
           const std::function<void()>& action);

  /// Passes on all ended work, on a clock that is 1 ms ahead of that of events, and drops it.
  void read(DeviceClock& clock, BubblescopeTakeActivity take, void* to);

 private:
  struct Seen {
    SeenWork work;
    std::uint64_t tag = 0;
    std::size_t stream = 0;
    std::optional<std::int64_t> begin = {};  ///< mark
    std::optional<std::int64_t> end = {};
  };

  std::vector<Seen> seen_;
  std::uint64_t tag_ = 0;
  bool is_on_ = false;
};

}  // namespace bubblescope::tests
