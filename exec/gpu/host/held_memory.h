// How many bytes of activations ranks hold, and the most at a time.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "exec/runtime/backend.h"

namespace bubblescope {

/// Instructions note what they change as they are enqueued. When they ran says which of their
/// changes were there at once: memory is taken when an instruction begins, and given back when it
/// ends.
class HeldMemory {
 public:
  /// When an instruction ran; empty: it did not. Where the function itself is empty, instructions
  /// count one after the other.
  using Times = std::function<std::optional<Span>(InstructionId)>;

  HeldMemory(InstructionId instructions, std::int32_t ranks);

  /// What the instruction changes from now on is noted anew.
  void begin(InstructionId id) { changes_[id].clear(); }
  /// Changes of one instruction count as their sum. While it runs, it may take more.
  void change(InstructionId id, std::int32_t rank, Bytes bytes, Bytes during = 0);

  /// After a step.
  void note_step(const Times& times);

  /// The most that each rank has held.
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

}  // namespace bubblescope
