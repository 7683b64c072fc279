// Costs of a model that is cut into another number of stages.
//
// Nothing is known about the layers within a stage, so its work counts as spread evenly over it:
// four stages become eight by halving each, six by cutting at every 2/3. The total work stays the
// same to the nanosecond. The first and the last of three or more stages may differ from the others
// in other ways (Ends): by layers that take longer, so that the ends of any number of stages keep
// their ratios to the others, or by an embedding or a head, which stays whole at its end.
#pragma once

#include <cstdint>

#include "sim/model/cost_table.h"

namespace bubblescope::inline sim {

/// Returns the table with as many stages as the schedule has in one pipeline, in every replica. The
/// table does not change if it has this number already, or if its stages cannot be divided. Stages
/// that can be divided are those of one pipeline: eight of them are no two pipelines of four.
/// Overlapped pairs and contention cannot be divided and are left out.
/// The last `shards` entries, if any, are the shards of an output layer: they stay as they are, for
/// a schedule that has as many; such a table need not be divisible.
CostTable restage(const CostTable& table, const Schedule& schedule, std::int32_t shards = 0);

/// Whether restage() changes the table.
bool is_restaged(const CostTable& table, const Schedule& schedule, std::int32_t shards = 0);

/// Whether the first or the last stage differs from others, and it matters for the result in what
/// way.
bool restages_ends(const CostTable& table, const Schedule& schedule, std::int32_t shards = 0);

}  // namespace bubblescope::inline sim
