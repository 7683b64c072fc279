// Pieces by size.
#include "exec/gpu/activation_pool.h"

#include <algorithm>

namespace bubblescope {

void* ActivationPool::take(std::size_t bytes) {
  held_ += static_cast<Bytes>(bytes);
  peak_ = std::max(peak_, held_);
  std::vector<void*>& pieces = free_[bytes];
  if (!pieces.empty()) {
    void* const memory = pieces.back();
    pieces.pop_back();
    return memory;
  }
  pieces_.push_back(gpu_.allocate(device_, bytes));
  reserved_ += static_cast<Bytes>(bytes);
  return pieces_.back().get();
}

void ActivationPool::give(void* memory, std::size_t bytes) {
  held_ -= static_cast<Bytes>(bytes);
  free_[bytes].push_back(memory);
}

}  // namespace bubblescope
