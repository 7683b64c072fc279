// Memory of one rank for what comes and goes within a step.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "exec/gpu/host/certain_order.h"
#include "exec/gpu/host/gpu.h"

namespace bubblescope {

/// Hands out memory of any size and takes it back. Who is given a piece may use it on a stream only
/// behind whoever gave it back: on the rank's compute stream that goes without saying, and where
/// copies have streams of their own a CertainOrder tells. The pool grows until it has seen one
/// step; later steps, which take and give the same, find all they need.
class ActivationPool {
 public:
  /// `gpu` is not copied. Without a device, the memory is the host's, where copies reach it.
  ActivationPool(const Gpu& gpu, std::optional<std::int32_t> device) : gpu_(gpu), device_(device) {}

  /// Several streams use the pool; not copied.
  void share(const CertainOrder& order) { order_ = &order; }
  /// Who takes and gives from now on.
  void set_user(InstructionId user) { user_ = user; }
  /// Everything that was enqueued has ended.
  void settle();

  /// Throws Error when the device is full.
  void* take(std::size_t bytes);
  void give(void* memory, std::size_t bytes);

  Bytes held() const { return held_; }
  Bytes peak() const { return peak_; }          ///< the most that was held at once,
  void forget_peak() { peak_ = held_; }         ///< from now on
  Bytes reserved() const { return reserved_; }  ///< taken from the device

 private:
  struct Piece {
    void* memory = nullptr;
    std::optional<InstructionId> last_user;  ///< in this step
  };

  bool is_usable(const Piece& piece) const;

  const Gpu& gpu_;
  std::optional<std::int32_t> device_;
  const CertainOrder* order_ = nullptr;
  InstructionId user_ = 0;
  std::map<std::size_t, std::vector<Piece>> free_;  ///< by size
  std::vector<GpuHandle> pieces_;
  Bytes held_ = 0;
  Bytes peak_ = 0;
  Bytes reserved_ = 0;
};

}  // namespace bubblescope
