// The event loop: runs a Program in time order, with messages that share links, NICs and switches
// and ops that share a device.
//
// Only flows through shared resources and contended ops need a clock. Everything else is timed as
// soon as its dependencies are, as in the dataflow pass; with nothing shared the two agree.
#pragma once

#include <span>
#include <vector>

#include "sim/engine/contention_tracker.h"
#include "sim/engine/fair_share.h"
#include "sim/ir/program.h"
#include "sim/ir/timeline.h"
#include "sim/model/traffic.h"

namespace bubblescope::inline sim {

/// One simulated step.
struct SimulatedRun {
  Timeline timeline;
  std::vector<ResourceUse> uses = {};  ///< parallel to Traffic::resources; empty without traffic
};

/// Runs one Program with one Traffic any number of times, each time with other fixed times. Refers
/// to both, and to the gaps (see price_gaps(); empty: none).
class SharedSimulator {
 public:
  SharedSimulator(const Program& program, const Traffic& traffic, std::span<const Nanos> gaps = {});

  /// `fixed` replaces Traffic::fixed.
  SimulatedRun run(std::span<const Nanos> fixed) const;

 private:
  friend class SharedLoop;

  Nanos gap_of(InstructionId id) const { return gaps_.empty() ? 0 : gaps_[id]; }

  const Program& program_;
  const Traffic& traffic_;
  std::span<const Nanos> gaps_;
  /// Per instruction: the number of its dependencies and lane predecessors.
  std::vector<std::uint32_t> awaited_;
  std::vector<InstructionId> next_in_lane_;  ///< per instruction
  std::vector<std::uint32_t> waiter_begin_;  ///< per instruction, and the end
  std::vector<InstructionId> waiters_;       ///< the instructions that depend on it
  /// Per instruction: its flow or, numbered after all flows, its contended op.
  std::vector<std::uint32_t> task_of_;
};

/// One run.
SimulatedRun simulate_shared(const Program& program, const Traffic& traffic,
                             std::span<const Nanos> gaps = {});

}  // namespace bubblescope::inline sim
