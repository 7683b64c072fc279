// The phases that DualPipe and DualPipeV share: two streams of micro-batches meet on a rank, and
// the forward of one overlaps the backward of the other. DeepSeek-AI, "DeepSeek-V3 Technical
// Report", 2024, section 3.2.1, and its DualPipe repository.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "schedules/chunk_cost.h"
#include "schedules/two_streams.h"
#include "sim/ir/schedule.h"

namespace bubblescope {

/// A rank on the way from an end of the pipeline, where stream 0 comes in and stream 1 leaves, to
/// its innermost rank: there the streams are one (DualPipeV) or go on to the other half (DualPipe).
struct DualRank {
  std::array<Stream, 2> streams;
  std::int32_t microbatches = 0;  ///< in each stream
  std::int32_t depth = 0;         ///< ranks on the way
  std::int32_t position = 0;      ///< of this rank on the way, from 0
};

RankOrder dual_order(const DualRank& rank);

/// What a rank waits in total when overlapped pairs start together and cost F + B:
///   (depth-1) (2F + [I - W]+)
/// In the paper's words (F&B + B - 3W), which supposes F = I >= W. Empty where I > F, where B is
/// not I + W, and where messages take time: there is no closed form.
std::optional<Nanos> dual_bubble(const ChunkCost& cost, std::int32_t depth);

}  // namespace bubblescope
