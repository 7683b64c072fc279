// Which instructions of a rank have certainly ended when another begins, whatever anything takes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/ir/program.h"

namespace bubblescope {

/// Of a rank's compute ops and its copies, as far as they wait for each other directly or along
/// their lanes. What is known over messages and other ranks is left out.
class CertainOrder {
 public:
  explicit CertainOrder(const Program& program);

  /// Whether `first` has ended when `then` begins; both of one rank. False: it may not have.
  bool comes_before(InstructionId first, InstructionId then) const;

 private:
  enum Queue : std::uint8_t { kCompute, kEvict, kLoad, kQueues };
  using Counts = std::array<std::uint32_t, kQueues>;  ///< instructions of a queue, from its begin

  static Queue queue_of(OpKind kind);

  const Program& program_;
  std::vector<std::uint32_t> place_;  ///< [instruction]: in its rank's queue, from 1; 0: in none
  std::vector<Counts> ended_;         ///< [instruction]: when it begins
};

}  // namespace bubblescope
