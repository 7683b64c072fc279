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

namespace bubblescope::schedules {

/// A rank on the path from an end of the pipeline, where stream 0 enters and stream 1 leaves, to
/// the innermost rank: there both are the same stream (DualPipeV) or continue to the other half
/// (DualPipe).
struct DualRank {
  std::array<Stream, 2> streams;
  std::int32_t microbatches = 0;  ///< in each stream
  std::int32_t depth = 0;         ///< ranks on the path
  std::int32_t position = 0;      ///< of this rank on the path, from 0
};

RankOrder make_dual_order(const DualRank& rank);

/// The total waiting time of a rank if overlapped pairs start together and cost F + B:
///   (depth-1) (2F + [I - W]+)
/// The paper writes (F&B + B - 3W), which assumes F = I >= W. Empty if I > F, if B is not I + W,
/// and if messages take time: there is no closed form.
std::optional<Nanos> compute_dual_bubble(const ChunkCost& cost, std::int32_t depth);

}  // namespace bubblescope::schedules
