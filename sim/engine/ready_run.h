// The engine of ready policies, under which a rank's order is a hint: the rank runs what is ready.
//
// At every moment, first all instructions that end then have ended. Then each free rank runs one of
// its ops whose dependencies have ended: the one with the best priority that keeps the rank's
// memory bound. The two ops of an overlapped pair run together, once both are ready.
//
// The memory bound is the most that the rank holds in its own order. An op may run early only if
// the rest of the order still keeps the bound afterwards. So the order itself always remains
// possible, and a policy cannot deadlock where the order does not:
//
//   order 0F0 0F1 0B0 0F2 0B1 0B2, bound 2:  0F2 may not run before 0B0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/engine/ready_choices.h"
#include "sim/engine/ready_units.h"
#include "sim/ir/program.h"
#include "sim/ir/timeline.h"
#include "sim/ir/units.h"

namespace bubblescope::inline sim {

struct ReadyRun {
  Timeline timeline;
  std::vector<std::vector<InstructionId>> order;  ///< [rank]: what its compute lane ran
};

/// Runs a Program whose compute lanes may be reordered; its other lanes keep their order. Refers to
/// the Program.
class ReadySimulator {
 public:
  ReadySimulator(const Program& program, const ReadyRules& rules);

  /// A rank begins its next op no sooner than the op gap after the end of one. That is the longest
  /// of `gaps`, those of price_gaps() (empty: none); within a pair it is the second half's own.
  ReadyRun run(std::span<const Nanos> durations, std::span<const Nanos> gaps = {}) const;

 private:
  friend class ReadyLoop;

  using Edges = std::vector<std::pair<InstructionId, InstructionId>>;  ///< awaited, waiter

  void number_units();
  void add_edges_of_lanes(Edges& edges) const;
  void add_waiters();

  const Program& program_;
  std::vector<std::vector<ReadyUnit>> units_;  ///< [rank], in its order
  std::vector<ReadyChoices> choices_;          ///< [rank]: none is ready
  std::vector<std::uint32_t> unit_of_;         ///< per instruction of a compute lane
  /// Per instruction: its dependencies and, outside compute lanes, its lane predecessor. For a
  /// pair, the first half has those of both.
  std::vector<std::uint32_t> awaited_;
  std::vector<std::uint32_t> waiter_begin_;  ///< per instruction, and the end
  std::vector<InstructionId> waiters_;
};

/// Returns the longest path from the start of every instruction to the end of the step, along
/// dependencies and from the first half of a pair to the second.
std::vector<Nanos> find_remaining_paths(const Program& program, std::span<const Nanos> durations);

}  // namespace bubblescope::inline sim
