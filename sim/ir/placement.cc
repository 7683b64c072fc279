// Builds the common placements.
#include "sim/ir/placement.h"

#include <numeric>

namespace bubblescope::inline sim {

std::vector<std::int32_t> loop_placement(std::int32_t ranks, std::int32_t chunks) {
  std::vector<std::int32_t> rank_of_stage;
  for (std::int32_t stage = 0; stage < ranks * chunks; ++stage)
    rank_of_stage.push_back(stage % ranks);
  return rank_of_stage;
}

std::vector<std::int32_t> zigzag_placement(std::int32_t ranks, std::int32_t chunks) {
  std::vector<std::int32_t> rank_of_stage;
  for (std::int32_t stage = 0; stage < ranks * chunks; ++stage) {
    const std::int32_t step = stage % ranks;
    const bool downward = (stage / ranks) % 2 == 0;
    rank_of_stage.push_back(downward ? step : ranks - 1 - step);
  }
  return rank_of_stage;
}

std::vector<std::int32_t> bidirectional_placement(std::int32_t ranks) {
  return zigzag_placement(ranks, 2);
}

std::vector<std::int32_t> host_offload_targets(std::int32_t ranks) {
  std::vector<std::int32_t> offload_targets(ranks);
  std::iota(offload_targets.begin(), offload_targets.end(), 0);
  return offload_targets;
}

}  // namespace bubblescope::inline sim
