// The best plan at each shape, as a table of letters and as a picture.
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/plan.h"
#include "traces/plans/plan_table.h"

namespace bubblescope::traces {

/// Draws the best plan over two free axes: pipeline sizes and micro-batch counts, or for a model
/// tensor ranks. A cell shows the letter of its schedule and how much slower it is than the best
/// plan of all, or its MFU; colours show the former. Empty where there is only one shape.
///
/// pp \ m         8        16        32
/// 4        a +21.3%   a +8.0%   b +0.0%
/// a zb-h2  b zb-v
std::string write_heat_map_text(const std::vector<Plan>& ranked, const PlanTextOptions& options);
std::string write_heat_map_svg(const std::vector<Plan>& ranked);

}  // namespace bubblescope::traces
