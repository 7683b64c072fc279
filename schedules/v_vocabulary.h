// V-Half with the shards of an output layer: two chunks per rank in a V, and stage 2p + r is the
// shard of rank r. Yeung et al., "Balancing Pipeline Parallelism with Vocabulary Parallelism",
// 2024, on the building block of V-Half (Qi et al., "Pipeline Parallelism with Controllable
// Memory").
#pragma once

#include <cstdint>

#include "sim/model/schedule_def.h"

namespace bubblescope::schedules {

/// How the passes of the shards follow a micro-batch's last forward.
enum class VocabAlgorithm : std::uint8_t {
  kTwoBarriers,  ///< Algorithm 1: F one interval before B, and B one before the first backward
  kOneBarrier,   ///< Algorithm 2: F and I one interval before the first backward, and W with it
};

/// Completes the definition of a schedule that has a name, a summary and a source: the order in
/// which the block's ops run with the costs' durations, where each rank takes what can start first
/// and holds no more than in the repeated block: about (p + 3) / 2 micro-batches, and one more for
/// every barrier. The block is made for F, I and W of equal length; repeated as it is, it stalls
/// where they differ. Weight gradients either wait for a moment at which nothing else can start, or
/// take their turn an interval later: the faster of the two orders.
ScheduleDef define_v_half_vocab(ScheduleDef def, VocabAlgorithm algorithm);

}  // namespace bubblescope::schedules
