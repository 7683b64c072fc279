// The rows of the SVG timeline: every rank's ops.
#pragma once

#include <string>

#include "traces/drawings/svg_layout.h"
#include "traces/text/palette.h"

namespace bubblescope::traces {

/// The CSS class of an op's colour: "F0" is the forward of chunk 0.
std::string colour_class(const Palette& palette, const Op& op);

/// Adds a row per rank: its label, its ops (with their micro-batches where those fit, a frame
/// around overlapped pairs) and a bar for its activation peak.
void draw_rows(SvgCanvas& canvas, const StepRecord& record, const SvgLayout& layout,
               const Palette& palette);

}  // namespace bubblescope::traces
