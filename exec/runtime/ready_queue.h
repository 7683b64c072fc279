// The queue of a rank whose order is a hint. It follows the rules of sim/engine/ready_run.h, so
// that ops that take the predicted times run in the predicted order.
//
//   order 0F0 0F1 0B0 0F2; 0B0 and 0F2 are ready, and backwards are preferred  ->  0B0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/engine/ready_choices.h"
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

  /// [place]: the places of the units that wait for an op of this one, once for each that they wait
  /// for.
  using Followers = std::vector<std::vector<std::uint32_t>>;

  /// The units are in the order of the rank. Only prefers_another() needs `followers`.
  ReadyQueue(std::vector<ReadyUnit> units, const std::vector<std::int64_t>& priority,
             Followers followers = {});

  /// Returns to the start of the order.
  void rewind();

  /// Notes when the inputs of an op are there. A unit is ready when those of all its ops are.
  void add_ready_op(std::size_t place, Nanos time);

  /// The unit that the rank prefers among those that can start first. `free` is when the rank has
  /// nothing else to do, and never lies before an earlier one. Returns nullopt if no unit that it
  /// may run is ready.
  std::optional<Choice> find(Nanos free);

  /// Whether the rank may run a unit that it prefers to this one, and that is not ready but may
  /// become so while the rank waits, because it waits for no unit that the rank has not taken.
  bool prefers_another(std::size_t place) const;

  ReadyUnit take(std::size_t place);

 private:
  struct State {
    int missing_ops = 0;            ///< whose inputs are not there
    std::uint32_t missing_own = 0;  ///< units of this rank that it waits for
    Nanos ready = 0;
    bool has_arrived = false;  ///< it was ready when the rank chose
    bool is_taken = false;
  };

  bool may_run(std::size_t place) const;
  void add_choice(std::size_t place);

  std::vector<ReadyUnit> units_;
  Followers followers_;
  MemoryBound untouched_;
  ReadyChoices none_;          ///< the choices of a rank for which nothing is ready
  std::vector<State> states_;  ///< [place]
  ReadyChoices arrived_;       ///< ready when the rank last chose
  ReadyChoices awaited_;       ///< not ready, but may become so while the rank waits
  std::set<std::pair<Nanos, std::uint32_t>>
      coming_;                  ///< time and preference of all other ready units
  std::size_t first_left_ = 0;  ///< the lowest place that was not taken
  MemoryBound memory_;
};

}  // namespace bubblescope::exec
