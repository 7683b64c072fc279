// Memory of one rank for what comes and goes within a step.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "exec/gpu/gpu.h"

namespace bubblescope {

/// Hands out device memory of any size and takes it back. Who is given a piece may use it only on
/// the rank's compute stream: there, what used it before has ended. The pool grows until it has
/// seen one step; later steps, which take and give the same, find all they need.
class ActivationPool {
 public:
  /// `gpu` is not copied.
  ActivationPool(const Gpu& gpu, std::int32_t device) : gpu_(gpu), device_(device) {}

  /// Throws Error when the device is full.
  void* take(std::size_t bytes);
  void give(void* memory, std::size_t bytes);

  Bytes held() const { return held_; }
  Bytes peak() const { return peak_; }          ///< the most that was held at once
  Bytes reserved() const { return reserved_; }  ///< taken from the device

 private:
  const Gpu& gpu_;
  std::int32_t device_;
  std::map<std::size_t, std::vector<void*>> free_;  ///< by size
  std::vector<GpuHandle> pieces_;
  Bytes held_ = 0;
  Bytes peak_ = 0;
  Bytes reserved_ = 0;
};

}  // namespace bubblescope
