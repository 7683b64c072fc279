// Tracks the activation memory of ranks and its peak.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "exec/runtime/backend.h"

namespace bubblescope::exec {

/// Instructions record their allocations and frees as they are enqueued. The times at which they
/// ran tell which of them overlapped: memory is allocated when an instruction begins and freed when
/// it ends.
class MemoryTracker {
 public:
  /// Returns when an instruction ran; empty if it did not. If the function itself is empty,
  /// instructions are taken to run one after the other.
  using Times = std::function<std::optional<Span>(InstructionId)>;

  MemoryTracker(InstructionId instructions, std::int32_t ranks);

  /// Forgets the recorded changes of an instruction.
  void begin(InstructionId id) { changes_[id].clear(); }
  /// Adds a change of `bytes`, which lasts, and an extra `during`, which lasts while the
  /// instruction runs.
  void change(InstructionId id, std::int32_t rank, Bytes bytes, Bytes during = 0);

  /// Updates the peaks; call after a step.
  void note_step(const Times& times);

  /// The most bytes that each rank has held.
  const std::vector<Bytes>& peaks() const { return peaks_; }

 private:
  struct Change {
    std::int32_t rank = 0;
    Bytes bytes = 0;
    Bytes during = 0;
  };

  std::vector<std::vector<Change>> changes_;  ///< [instruction]
  std::vector<Bytes> peaks_;                  ///< [rank]
};

}  // namespace bubblescope::exec
