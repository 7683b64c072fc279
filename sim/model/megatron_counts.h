// Megatron-LM's rule for layers: the same number on every rank, except for the ends.
//
//   20 layers on 4 ranks, 3 on the first and 5 on the last     3 6 6 5
//   30 layers, the embedding and the loss count as one each    7 8 8 7
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::inline sim {

/// The ends of a pipeline, in layers.
struct UnevenEnds {
  std::optional<std::int32_t> first = {};  ///< layers of the first rank
  std::optional<std::int32_t> last = {};
  bool counts_embedding = false;  ///< the embedding counts as a layer of the first stage
  bool counts_loss = false;       ///< the loss counts as a layer of the last stage

  bool any() const { return first || last || counts_embedding || counts_loss; }
};

/// Layers per stage, one stage per rank. A stage may have none, as in Megatron-LM. Throws Error if
/// the ends have too many layers, or if the others do not divide evenly.
std::vector<std::int32_t> compute_megatron_counts(std::int32_t layers, std::int32_t stages,
                                                  const UnevenEnds& ends);

/// [stage]: the layers of one pipeline of the schedule, where the stages of a rank are equal.
/// Throws Error as above, and where stages are not placed in a loop.
std::vector<std::int64_t> place_megatron_counts(std::int64_t layers, const Schedule& schedule,
                                                const UnevenEnds& ends);

}  // namespace bubblescope::inline sim
