// The sizes that a schedule may have: a mistyped number is then an error and not a hang. What can
// be built can also be written to a file and read back.
#pragma once

#include <cstdint>

#include "sim/ir/shape.h"

namespace bubblescope::inline sim {

/// The chunks of a rank.
inline constexpr std::int32_t kMaxChunks = 1024;

/// The stages of one pipeline, without copies and shards: ranks times chunks.
inline constexpr std::int32_t kMaxBuiltStages = 2 * kMaxRanks;

/// All stages. There may be a second pipeline's copies, or a shard of an output layer per rank.
inline constexpr std::int32_t kMaxStages = 2 * kMaxBuiltStages;

/// The micro-batches of a step.
inline constexpr std::int32_t kMaxMicrobatches = 1 << 24;

/// The ops of all ranks together, which take about 20 GB.
inline constexpr std::int64_t kMaxOps = 100'000'000;

/// The ops of one configuration of many. Larger ones take seconds and 150 MB on each thread, and
/// with so many micro-batches there is hardly any bubble.
inline constexpr std::int64_t kMaxPlannedOps = 1'000'000;

/// Throws Error for a shape with too many stages, or with more ops than these.
void expect_size(const Shape& shape, std::int64_t max_ops);

}  // namespace bubblescope::inline sim
