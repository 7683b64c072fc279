// Groups of micro-batches that an interleaved schedule takes through a chunk before the next one.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/model/schedule_def.h"

namespace bubblescope::inline sim {

/// The smallest groups of micro-batches that delay no rank, where those of the shape or of the
/// schedule leave a last one that is shorter than the pipeline: the last one is then full, or has a
/// micro-batch for every rank (Megatron-LM's rule). nullopt where nothing is delayed, and where the
/// framework has no choice.
std::optional<std::int32_t> find_full_groups(const ScheduleDef& def, const Shape& shape,
                                             Profile profile);

}  // namespace bubblescope::inline sim
