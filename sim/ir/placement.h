// Common placements: which rank holds which stage.
#pragma once

#include <cstdint>
#include <vector>

namespace bubblescope::inline sim {

/// Stage s on rank s mod p: one pass around the ranks per chunk.
std::vector<std::int32_t> loop_placement(std::int32_t ranks, std::int32_t chunks);

/// Down the ranks, up again, and so on: chunk c starts on the rank where chunk c-1 ended.
std::vector<std::int32_t> zigzag_placement(std::int32_t ranks, std::int32_t chunks);

/// Returns the placement of two replicas in opposite directions: stage s is on rank s, stage p+s on
/// rank p-1-s.
std::vector<std::int32_t> bidirectional_placement(std::int32_t ranks);

/// Evicted activations go to the host: each rank is mapped to its own host's memory.
std::vector<std::int32_t> host_offload_targets(std::int32_t ranks);

}  // namespace bubblescope::inline sim
