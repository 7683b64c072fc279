// What a forward keeps as bytes, on its way to the memory of another process and back.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

#include "exec/runtime/blob.h"
#include "exec/training/held_bytes.h"
#include "sim/ir/op.h"

namespace bubblescope {

Blob to_bytes(const Kept& kept);

/// Throws Error for bytes that are no such thing.
Kept read_kept(std::span<const std::byte> bytes);

/// How much memory it takes where it is used.
Bytes held_bytes_of(const Blob& bytes);

/// What ranks of other processes keep in this one's memory. Any thread may call.
class KeptForOthers {
 public:
  void put(const Op& copy, Blob bytes);

  /// What was put there for this stage, micro-batch and slice, which goes; empty: nothing was.
  Blob take(const Op& copy);

 private:
  using Place = std::array<std::int32_t, 3>;

  std::mutex mutex_;
  std::map<Place, Blob> kept_;
};

}  // namespace bubblescope
