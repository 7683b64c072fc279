// The time of simulated devices: streams run their commands in order and as early as possible, and
// kernels on several streams of a device slow each other. All devices share one clock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace bubblescope::tests {

/// How many times longer a kernel takes while 2, 3, ... streams of its device are busy; the last
/// entry also holds for more. Empty: no contention.
using SlowdownLaw = std::vector<double>;

/// The time that a device takes besides its work.
struct DeviceTraits {
  double nanos_per_record = 0;  ///< on a stream, after every event that it records
  double nanos_per_wait = 0;    ///< on a stream, after every event that it waits for
  /// The clock of the multiprocessors at a time, of which 1 is the nominal one. Kernels follow it,
  /// copies do not. Empty: always 1.
  std::function<double(double nanos)> speed = {};
};

class DeviceClock {
 public:
  void set_traits(DeviceTraits traits) { traits_ = std::move(traits); }
  double speed() const { return traits_.speed ? traits_.speed(now_) : 1; }

  /// Returns the stream's number.
  std::size_t add_stream(std::int32_t device);
  /// Drops all that is still on the stream.
  void remove_stream(std::size_t stream);

  /// Adds a kernel that takes this long without contention. With a law, it counts as busy and is
  /// slowed by others; if it counts cycles, it is also slowed by a low clock.
  void run(std::size_t stream, double nanos, const SlowdownLaw* law = nullptr,
           bool counts_cycles = false);
  /// Adds a copy that takes this long without contention. It does not count as busy, and is slowed
  /// by 1, 2, ... busy streams.
  void run_beside(std::size_t stream, double nanos, const SlowdownLaw& law);
  /// Blocks the stream until the word is not 0.
  void block(std::size_t stream, const volatile std::uint32_t* word);
  /// Whether a stream is blocked now.
  bool is_blocked();
  /// Ends all blocks.
  void expire_blocks();
  /// Returns a mark, at which the stream's time will be recorded.
  std::int64_t record(std::size_t stream);
  /// Blocks the stream until the mark is passed.
  void wait(std::size_t stream, std::int64_t mark);

  /// Advances all streams as far as possible.
  void advance();

  /// When a mark was passed, after advancing as far as possible; empty if it was not.
  std::optional<double> time_of(std::int64_t mark);

 private:
  struct Command {
    enum class Kind : std::uint8_t { kRun, kBlock, kRecord, kWait } kind;
    double left = 0;
    const SlowdownLaw* law = nullptr;
    bool is_beside = false;
    bool counts_cycles = false;
    const volatile std::uint32_t* word = nullptr;
    std::int64_t mark = 0;
  };
  struct Stream {
    std::int32_t device = 0;
    bool removed = false;
    std::deque<Command> commands;
  };

  void add(std::size_t stream, const Command& command);
  bool settle();
  bool settle(Stream& stream);
  bool has_ended(const Command& command);
  double rest_behind(const Command& command) const;
  std::int64_t count_busy(std::int32_t device) const;
  double rate_of(const Stream& stream) const;

  DeviceTraits traits_;
  std::vector<Stream> streams_;
  std::vector<std::size_t> active_;  ///< streams with commands, in their order
  std::vector<std::optional<double>> marks_;
  double now_ = 0;
};

}  // namespace bubblescope::tests
