// Allocates and frees memory.
#include "exec/training/stage_state.h"

#include <algorithm>

namespace bubblescope::exec {

void RankMemory::add(Bytes bytes) {
  const std::lock_guard lock(mutex_);
  held_ += bytes;
  peak_ = std::max(peak_, held_);
}

}  // namespace bubblescope::exec
