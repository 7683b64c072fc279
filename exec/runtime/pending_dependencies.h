// How many dependencies of every instruction have not ended yet in this step.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "sim/ir/program.h"

namespace bubblescope::exec {

/// Counts the dependencies that are left of every instruction. Any thread may end them.
class PendingDependencies {
 public:
  /// Whether the order of a lane keeps this dependency of an instruction, so that it is not
  /// counted.
  using IsKept = std::function<bool(InstructionId dependency, InstructionId id)>;
  PendingDependencies(const Program& program, const IsKept& is_kept);

  /// Returns to the start of a step. Call only while no lane runs.
  void reset();

  /// Whether no dependency of the instruction is counted; the order of its lane may still hold it
  /// back.
  bool has_none(InstructionId id) const { return needed_[id] == 0; }
  bool have_ended(InstructionId id) const {
    return missing_[id].load(std::memory_order_acquire) == 0;
  }
  /// Counts one dependency of the instruction as ended. Returns whether it was the last one.
  bool end_one(InstructionId id) {
    return missing_[id].fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  /// The instructions that count this one among their dependencies.
  std::span<const InstructionId> dependents_of(InstructionId id) const {
    return {dependents_.data() + begin_[id], dependents_.data() + begin_[id + 1]};
  }

 private:
  std::vector<std::uint32_t> begin_;  ///< [instruction]: where its dependents begin
  std::vector<InstructionId> dependents_;
  std::vector<std::int32_t> needed_;  ///< [instruction]: its counted dependencies
  std::unique_ptr<std::atomic<std::int32_t>[]> missing_;  ///< how many of them have not ended
};

}  // namespace bubblescope::exec
