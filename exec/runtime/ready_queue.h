// The queue of a rank whose order is a hint. It follows the rules of sim/engine/ready_run.h, so
// that ops that take the predicted times run in the predicted order.
//
//   order 0F0 0F1 0B0 0F2; 0B0 and 0F2 are ready, and backwards are preferred  ->  0B0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "sim/engine/ready_units.h"
#include "sim/ir/units.h"

namespace bubblescope::exec {

/// Lets ranks choose among the ops that are ready.
struct ReadyPolicy {
  ReadyRules rules;
  /// How long a rank waits before it runs an op while it prefers another one that may become ready
  /// at any moment. Where the work plays given times, ops that become ready at the same time are
  /// then compared, although a rank learns of one after the other. 0: it does not wait.
  Nanos tie_wait = 0;
};

/// The units of one rank that have not run yet, and those of them that are ready. Not thread-safe.
class ReadyQueue {
 public:
  /// A unit that may run, by its place in the rank's order.
  struct Choice {
    std::size_t place = 0;
    Nanos time = 0;  ///< when it can start: in the future if a message is still on its way
  };

  /// The units are in the order of the rank.
  ReadyQueue(std::vector<ReadyUnit> units, const std::vector<std::int64_t>& priority);

  /// Returns to the start of the order.
  void rewind();

  /// Notes when the inputs of an op are there. A unit is ready when those of all its ops are.
  void add_ready_op(std::size_t place, Nanos time);

  /// The unit that the rank prefers among those that can start first. `free` is when the rank has
  /// nothing else to do. Returns nullopt if no unit that it may run is ready.
  std::optional<Choice> find(Nanos free) const;

  /// Whether the rank may run a unit that it prefers to this one, and that is not ready but may
  /// become so while the rank waits.
  bool prefers_another(std::size_t place,
                       const std::function<bool(const ReadyUnit& unit)>& may_come) const;

  ReadyUnit take(std::size_t place);

 private:
  struct State {
    int missing_ops = 0;  ///< whose inputs are not there
    Nanos ready = 0;
    bool is_taken = false;
  };

  bool may_run(std::size_t place) const;

  std::vector<ReadyUnit> units_;
  std::vector<std::size_t> preferred_;   ///< all places, the best first
  std::vector<std::size_t> preference_;  ///< [place]: its index in preferred_
  MemoryBound untouched_;
  std::vector<State> states_;      ///< [place]
  std::set<std::size_t> ready_;    ///< indices in preferred_
  std::size_t first_waiting_ = 0;  ///< index in preferred_: all before it are ready or taken
  std::size_t first_left_ = 0;     ///< the lowest place that was not taken
  MemoryBound memory_;
};

}  // namespace bubblescope::exec
