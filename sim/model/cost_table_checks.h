// Checks that a cost table has what a schedule needs.
#pragma once

#include <array>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/model/cost_table.h"

namespace bubblescope::inline sim {

/// The kinds of ops that run on a stage.
using OpKindSet = std::array<bool, kOpKinds>;

bool runs_kind(const OpKindSet& kinds, OpKind kind);

/// [entry of the table]: the kinds of ops that a schedule runs on its stages.
std::vector<OpKindSet> kinds_of_stages(const CostTable& table, const Schedule& schedule);

/// Throws Error unless the table has an entry for each stage. Its stages may cover all pipelines
/// or only one; then the replicas of a stage cost the same.
void expect_stages(const CostTable& table, const Schedule& schedule);

/// Throws Error where an entry lacks the time of an op that runs there.
void expect_durations(const CostTable& table, const Schedule& schedule,
                      const std::vector<OpKindSet>& kinds);

}  // namespace bubblescope::inline sim
