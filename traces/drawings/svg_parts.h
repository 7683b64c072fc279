// The parts of ops in the SVG timeline: a strip below a rank's row for each of its lanes.
#pragma once

#include "traces/drawings/svg_layout.h"
#include "traces/text/palette.h"

namespace bubblescope::traces {

/// The lanes that parts use, in the order of kPartLanes; none where ops have no parts.
std::vector<PartLane> find_part_lanes(const BubbleReport& report);

/// How many parts a picture would show.
std::size_t count_parts(const BubbleReport& report);

/// Adds the parts of all ranks, each in the colour of its op.
void draw_parts(SvgCanvas& canvas, const StepRecord& record, const SvgLayout& layout,
                const Palette& palette);

}  // namespace bubblescope::traces
