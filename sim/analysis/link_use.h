// How busy shared links and devices were.
#pragma once

#include <span>
#include <vector>

#include "sim/analysis/report.h"
#include "sim/engine/fair_share.h"

namespace bubblescope {

/// Everything that messages passed, the most utilized first; among equals, in the order of their
/// first message.
std::vector<LinkUse> account_for_links(const Traffic& traffic, std::span<const ResourceUse> uses,
                                       Nanos makespan);

}  // namespace bubblescope
