// Keeps track of the ranks that are gone.
#include "exec/runtime/transport.h"

namespace bubblescope::exec {

Transport::Transport(const RankInfo& self, bool is_relayed)
    : self_(self), is_relayed_(is_relayed), gone_(static_cast<std::size_t>(self.count), false) {}

bool Transport::is_gone(std::int32_t rank) const {
  const std::lock_guard lock(gone_mutex_);
  return gone_[static_cast<std::size_t>(rank)];
}

std::optional<std::int32_t> Transport::first_gone() const {
  const std::lock_guard lock(gone_mutex_);
  return first_gone_;
}

std::int32_t Transport::coordinator() const {
  std::int32_t rank = 0;
  while (rank != self_.rank && is_gone(rank)) ++rank;
  return rank;
}

bool Transport::note_gone(std::int32_t rank) {
  const std::lock_guard lock(gone_mutex_);
  if (gone_[static_cast<std::size_t>(rank)]) return false;
  gone_[static_cast<std::size_t>(rank)] = true;
  if (!first_gone_) first_gone_ = rank;
  return true;
}

std::vector<bool> Transport::gone() const {
  const std::lock_guard lock(gone_mutex_);
  return gone_;
}

}  // namespace bubblescope::exec
