// The memory pool: free blocks by size.
#include "exec/gpu/host/activation_pool.h"

#include <algorithm>
#include <iterator>

namespace bubblescope::exec {

bool ActivationPool::is_usable(const FreeBlock& block) const {
  return order_ == nullptr || !block.last_user || *block.last_user == user_ ||
         order_->happens_before(*block.last_user, user_);
}

std::vector<ActivationPool::FreeBlock>& ActivationPool::free_of(std::size_t bytes) {
  for (SizeClass& known : free_)
    if (known.bytes == bytes) return known.blocks;
  return free_.emplace_back(SizeClass{bytes, {}}).blocks;
}

void* ActivationPool::acquire(std::size_t bytes) {
  held_ += static_cast<Bytes>(bytes);
  peak_ = std::max(peak_, held_);
  std::vector<FreeBlock>& pieces = free_of(bytes);
  const auto newest = std::find_if(pieces.rbegin(), pieces.rend(),
                                   [this](const FreeBlock& block) { return is_usable(block); });
  if (newest != pieces.rend()) {
    void* const memory = newest->memory;
    pieces.erase(std::next(newest).base());
    return memory;
  }
  pieces_.push_back(device_ ? gpu_.allocate(*device_, bytes) : gpu_.allocate_on_host(bytes));
  reserved_ += static_cast<Bytes>(bytes);
  return pieces_.back().get();
}

void ActivationPool::release(void* memory, std::size_t bytes) {
  held_ -= static_cast<Bytes>(bytes);
  free_of(bytes).push_back({memory, user_});
}

void ActivationPool::forget_users() {
  for (SizeClass& known : free_)
    for (FreeBlock& block : known.blocks) block.last_user.reset();
}

}  // namespace bubblescope::exec
