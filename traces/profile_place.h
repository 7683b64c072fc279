// Where in a job of several kinds of parallelism a profile was recorded, from PyTorch's
// distributedInfo: the ranks of its pipeline group, and whether it repeats a tensor-parallel peer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traces/chrome_events.h"

namespace bubblescope {

struct ProfilePlace {
  std::optional<std::int32_t> rank;     ///< in the pipeline; the global rank where no group says so
  std::optional<std::int32_t> replica;  ///< the lowest global rank of its pipeline group
  std::int64_t ranks = 0;               ///< of the pipeline; 0 where nothing says so
  bool is_tensor_peer = false;          ///< not the first of its tensor-parallel group
};

/// Throws Error for ranks that no job has; `file` is its name for messages.
ProfilePlace place_in_job(const ChromeEvents& events, const std::string& file);

}  // namespace bubblescope
