// Compares the number of chunks that a schedule states with its placement.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/validate.h"

namespace bubblescope::inline sim {

namespace {

/// Returns for each rank how many stages it has in the pipeline of which it holds most, without
/// side stages.
std::vector<std::int32_t> count_chunks(const Schedule& schedule) {
  const std::int32_t per_pipeline = (schedule.stages() - schedule.side_stages) / schedule.pipelines;
  std::vector<std::int32_t> most(static_cast<std::size_t>(schedule.shape.ranks), 0);
  for (std::int32_t pipeline = 0; pipeline < schedule.pipelines; ++pipeline) {
    std::vector<std::int32_t> held(most.size(), 0);
    for (std::int32_t at = 0; at < per_pipeline; ++at) {
      const std::int32_t stage = pipeline * per_pipeline + at;
      const std::int32_t first = schedule.rank_of_stage[static_cast<std::size_t>(stage)];
      for (std::int32_t replica = 0; replica < schedule.replicas(stage); ++replica)
        ++held[static_cast<std::size_t>(first + replica)];
    }
    for (std::size_t rank = 0; rank < most.size(); ++rank)
      most[rank] = std::max(most[rank], held[rank]);
  }
  return most;
}

/// Returns the stages of a pipeline, counted once for each rank that runs them.
std::int64_t count_placed(const Schedule& schedule) {
  const std::int32_t per_pipeline = (schedule.stages() - schedule.side_stages) / schedule.pipelines;
  std::int64_t placed = 0;
  for (std::int32_t stage = 0; stage < per_pipeline; ++stage) placed += schedule.replicas(stage);
  return placed;
}

}  // namespace

Problems validate_chunks(const Schedule& schedule) {
  const std::int64_t ranks = schedule.shape.ranks;
  const std::int64_t min = std::max<std::int64_t>(1, (count_placed(schedule) + ranks - 1) / ranks);
  const std::vector<std::int32_t> chunks = count_chunks(schedule);
  const std::int64_t max = *std::max_element(chunks.begin(), chunks.end());
  const std::int64_t stated = schedule.shape.chunks;
  if (stated >= min && stated <= max) return {};
  const std::string possible =
      std::to_string(min) + (min == max ? "" : " to " + std::to_string(max));
  return {{{},
           {},
           "the shape says " + counted(stated, "chunk") +
               " per rank, but the placement gives a rank " + possible,
           "correct one of them"}};
}

}  // namespace bubblescope::inline sim
