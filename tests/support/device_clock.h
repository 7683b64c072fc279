// Time on a simulated device: streams run their commands in order, as early as they can, and
// kernels on several streams of a device slow each other. One clock for all devices.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope {

/// How many times longer a kernel takes with 2, 3, ... streams of its device busy; with more, as
/// with the last. Empty: others do not slow it.
using SlowdownLaw = std::vector<double>;

class DeviceClock {
 public:
  /// Returns the stream's number.
  std::size_t add_stream(std::int32_t device);
  /// What is still on it never happens.
  void remove_stream(std::size_t stream);

  /// A kernel that takes so long alone. With a law it is busy, and slowed by others that are.
  void run(std::size_t stream, double nanos, const SlowdownLaw* law = nullptr);
  /// A copy that takes so long alone. It is not busy, and slowed with 1, 2, ... streams that are.
  void run_beside(std::size_t stream, double nanos, const SlowdownLaw& law);
  /// Nothing more happens on the stream until the word is not 0.
  void block(std::size_t stream, const volatile std::uint32_t* word);
  /// The stream's time will be known under the mark that is returned.
  std::int64_t record(std::size_t stream);
  /// Nothing more happens on the stream until the mark's time has come.
  void wait(std::size_t stream, std::int64_t mark);

  /// Lets everything go on as far as it can.
  void advance();

  /// When a mark was passed, as far as anything can go on now; empty: not yet.
  std::optional<double> time_of(std::int64_t mark);

 private:
  struct Command {
    enum class Kind : std::uint8_t { kRun, kBlock, kRecord, kWait } kind;
    double left = 0;
    const SlowdownLaw* law = nullptr;
    bool is_beside = false;
    const volatile std::uint32_t* word = nullptr;
    std::int64_t mark = 0;
  };
  struct Stream {
    std::int32_t device = 0;
    bool removed = false;
    std::deque<Command> commands;
  };

  bool settle();
  bool has_ended(const Command& command);
  std::int64_t count_busy(std::int32_t device) const;
  double pace_of(const Stream& stream) const;

  std::vector<Stream> streams_;
  std::vector<std::optional<double>> marks_;
  double now_ = 0;
};

}  // namespace bubblescope
