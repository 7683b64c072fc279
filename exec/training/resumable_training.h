// The functions by which checkpoints save and restore a training, on the host or on devices. Call
// them only between two steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "exec/runtime/blob.h"
#include "exec/training/training_identity.h"

namespace bubblescope::exec {

struct ResumableTraining {
  std::function<std::int32_t()> steps;  ///< that were trained
  std::function<Blob()> save;           ///< the state of this process
  /// Continues bit for bit from a saved state. Throws Error if the bytes are not the state of a
  /// training like this one.
  std::function<void(std::span<const std::byte> state)> restore;
  /// Beyond the options: what computes, on which the last bit of every sum depends.
  TrainingIdentity computed_by;
};

}  // namespace bubblescope::exec
