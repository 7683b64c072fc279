// A rank's memory for matrices that live within one step.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "exec/gpu/host/gpu.h"
#include "exec/gpu/host/happens_before.h"

namespace bubblescope::exec {

/// A memory pool. A freed block may be reused on a stream only if that stream runs after the last
/// use of the block. On the rank's compute stream this always holds; where copies have their own
/// streams, the pool looks it up in the happens-before order. The pool grows during the first step;
/// later steps allocate and free the same sizes and need nothing more.
class ActivationPool {
 public:
  /// `gpu` is not copied. Without a device, the memory is pinned host memory.
  ActivationPool(const GpuRuntime& gpu, std::optional<std::int32_t> device)
      : gpu_(gpu), device_(device) {}

  /// The pool is used by several streams, ordered by `order`, which is not copied.
  void set_order(const HappensBefore& order) { order_ = &order; }
  /// Sets the instruction that takes and gives memory from now on.
  void set_user(InstructionId user) { user_ = user; }
  /// Call when all enqueued work has ended.
  void forget_users();

  /// Throws Error when the device is out of memory.
  void* acquire(std::size_t bytes);
  void release(void* memory, std::size_t bytes);

  Bytes held() const { return held_; }
  Bytes peak() const { return peak_; }          ///< the most bytes held at once,
  void reset_peak() { peak_ = held_; }          ///< since this call
  Bytes reserved() const { return reserved_; }  ///< bytes allocated on the device

 private:
  struct FreeBlock {
    void* memory = nullptr;
    std::optional<InstructionId> last_user;  ///< the last instruction of this step that used it
  };

  /// All free blocks of a size. A training has a dozen sizes.
  struct SizeClass {
    std::size_t bytes = 0;
    std::vector<FreeBlock> blocks;
  };

  bool is_usable(const FreeBlock& block) const;
  std::vector<FreeBlock>& free_of(std::size_t bytes);

  const GpuRuntime& gpu_;
  std::optional<std::int32_t> device_;
  const HappensBefore* order_ = nullptr;
  InstructionId user_ = 0;
  std::vector<SizeClass> free_;
  std::vector<GpuHandle> pieces_;
  Bytes held_ = 0;
  Bytes peak_ = 0;
  Bytes reserved_ = 0;
};

}  // namespace bubblescope::exec
