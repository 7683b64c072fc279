// Costs of neighbouring stages that run together on one rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/cost_table.h"

namespace bubblescope::inline sim {

struct JoinedTable {
  CostTable table;
  std::vector<std::string> left_out;  ///< costs that the table no longer has: "links", "contention"
};

/// Joins the stages of each group, which are neighbours; `groups` have all stages, in order. Work,
/// updates and bytes of a group add up, in every replica, and its messages are those after its
/// last stage. A group has input and weight gradients only if all its stages do: backwards are not
/// halved. Noise, messages that are all alike and the time outside the pipeline stay as they are.
///
/// Where stages are joined, costs without a sum are left out: links and kinds of stages,
/// contention, overlapped pairs, values that only some stages of a group have. Costs that cost
/// files cannot hold are left out always: clusters, and differences between micro-batches, whose
/// means stay.
JoinedTable join_stages(const CostTable& table,
                        const std::vector<std::vector<std::int32_t>>& groups);

}  // namespace bubblescope::inline sim
