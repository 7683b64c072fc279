// Groups of micro-batches that an interleaved schedule takes through a chunk before the next one.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/model/schedule_def.h"

namespace bubblescope::inline sim {

/// Finds the smallest groups of micro-batches that delay no rank, if the usual groups leave a last
/// one that is shorter than the pipeline. With them the last group is full, or has a micro-batch
/// for every rank (Megatron-LM's rule). nullopt if nothing is delayed, or if the framework has no
/// choice.
std::optional<std::int32_t> find_full_groups(const ScheduleDef& def, const Shape& shape,
                                             Profile profile);

}  // namespace bubblescope::inline sim
