// The event loop: messages that share links, NICs and switches, and ops that share a device, in
// time order.
//
// Only what flows through shared resources, or slows others, needs a clock. Everything else is
// timed as soon as what it waits for is, as the dataflow pass does it; with nothing shared the two
// are the same.
#pragma once

#include <span>
#include <vector>

#include "sim/engine/company.h"
#include "sim/engine/fair_share.h"
#include "sim/ir/program.h"
#include "sim/ir/timeline.h"
#include "sim/model/traffic.h"

namespace bubblescope {

struct SharedRun {
  Timeline timeline;
  std::vector<ResourceUse> uses;  ///< parallel to Traffic::resources
};

/// Runs one Program with one Traffic as often as wanted, each time with its own fixed times. Refers
/// to both.
class SharedSimulator {
 public:
  SharedSimulator(const Program& program, const Traffic& traffic);

  /// `fixed` replaces Traffic::fixed.
  SharedRun run(std::span<const Nanos> fixed) const;

 private:
  friend class SharedLoop;

  const Program& program_;
  const Traffic& traffic_;
  std::vector<std::uint32_t> awaited_;       ///< per instruction: how many it waits for
  std::vector<InstructionId> next_in_lane_;  ///< per instruction
  std::vector<std::uint32_t> waiter_begin_;  ///< per instruction, and the end
  std::vector<InstructionId> waiters_;       ///< who depends on it
  /// Per instruction: its flow or, behind all flows, its op in company.
  std::vector<std::uint32_t> task_of_;
};

/// One run.
SharedRun simulate_shared(const Program& program, const Traffic& traffic);

}  // namespace bubblescope
