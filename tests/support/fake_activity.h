// The records of a profiler of the fake GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/gpu/calls.h"
#include "tests/support/device_clock.h"

namespace bubblescope {

/// What is put on a stream, as the profiler will tell it.
struct SeenWork {
  std::int32_t kind = kBubblescopeKernel;
  std::string name;
  std::size_t bytes = 0;
};

class FakeActivity {
 public:
  void start() { is_on_ = true; }
  void tag(std::uint64_t tag) { tag_ = tag; }

  /// Something is enqueued now. Returns its number; empty: nobody looks.
  std::optional<std::size_t> see(const SeenWork& work);

  /// Does it, between two marks of its stream's time.
  void run(std::optional<std::size_t> seen, std::size_t stream, DeviceClock& clock,
           const std::function<void()>& action);

  /// Tells all that has ended, on a clock that is 1 ms ahead of that of events, and forgets it.
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

}  // namespace bubblescope
