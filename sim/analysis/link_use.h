// Utilization of shared links and devices.
#pragma once

#include <span>
#include <vector>

#include "sim/analysis/report.h"
#include "sim/engine/fair_share.h"

namespace bubblescope::inline sim {

/// All resources that messages passed, by descending utilization; ties in the order of their first
/// message.
std::vector<LinkUse> account_for_links(const Traffic& traffic, std::span<const ResourceUse> uses,
                                       Nanos makespan);

}  // namespace bubblescope::inline sim
