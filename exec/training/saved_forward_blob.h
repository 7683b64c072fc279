// Saved activations as bytes, to move them to the memory of another process and back.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

#include "exec/runtime/blob.h"
#include "exec/training/held_bytes.h"
#include "sim/ir/op.h"

namespace bubblescope::exec {

Blob to_bytes(const SavedForward& kept);

/// Throws Error for malformed bytes.
SavedForward read_saved_forward(std::span<const std::byte> bytes);

/// The memory that the activations take once they are read.
Bytes held_bytes_of(const Blob& bytes);

/// Activations that ranks of other processes have offloaded to this one. All functions are
/// thread-safe.
class OffloadStore {
 public:
  void put(const Op& copy, Blob bytes);

  /// Removes and returns what was put for this stage, micro-batch and slice; empty if nothing was.
  Blob take(const Op& copy);

 private:
  using Place = std::array<std::int32_t, 3>;

  std::mutex mutex_;
  std::map<Place, Blob> kept_;
};

}  // namespace bubblescope::exec
