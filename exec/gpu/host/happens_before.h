// The happens-before order of a rank's compute ops and copies, which holds whatever the durations.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/ir/program.h"

namespace bubblescope::exec {

/// Covers the order that follows from direct dependencies and from lanes of one rank. The order
/// that follows from messages and from other ranks is left out.
class HappensBefore {
 public:
  explicit HappensBefore(const Program& program);

  /// Whether `first` always ends before `then` begins; both are on one rank. False: it may not.
  bool happens_before(InstructionId first, InstructionId then) const;

 private:
  enum Queue : std::uint8_t { kCompute, kEvict, kLoad, kQueues };
  using Counts = std::array<std::uint32_t, kQueues>;  ///< [queue]: how many have ended

  static Queue queue_of(OpKind kind);

  const Program& program_;
  std::vector<std::uint32_t> place_;  ///< [instruction]: 1-based in its queue; 0: in none
  std::vector<Counts> ended_;         ///< [instruction]: those that have ended when it begins
};

}  // namespace bubblescope::exec
