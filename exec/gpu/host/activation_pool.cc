// The memory pool: free blocks by size.
#include "exec/gpu/host/activation_pool.h"

#include <algorithm>
#include <iterator>

namespace bubblescope {

bool ActivationPool::is_usable(const Piece& piece) const {
  return order_ == nullptr || !piece.last_user || *piece.last_user == user_ ||
         order_->comes_before(*piece.last_user, user_);
}

void* ActivationPool::take(std::size_t bytes) {
  held_ += static_cast<Bytes>(bytes);
  peak_ = std::max(peak_, held_);
  std::vector<Piece>& pieces = free_[bytes];
  const auto newest = std::find_if(pieces.rbegin(), pieces.rend(),
                                   [this](const Piece& piece) { return is_usable(piece); });
  if (newest != pieces.rend()) {
    void* const memory = newest->memory;
    pieces.erase(std::next(newest).base());
    return memory;
  }
  pieces_.push_back(device_ ? gpu_.allocate(*device_, bytes) : gpu_.allocate_on_host(bytes));
  reserved_ += static_cast<Bytes>(bytes);
  return pieces_.back().get();
}

void ActivationPool::give(void* memory, std::size_t bytes) {
  held_ -= static_cast<Bytes>(bytes);
  free_[bytes].push_back({memory, user_});
}

void ActivationPool::settle() {
  for (auto& [bytes, pieces] : free_)
    for (Piece& piece : pieces) piece.last_user.reset();
}

}  // namespace bubblescope
