// Detects what the terminal can show.
#pragma once

#include "traces/drawings/drawing.h"

namespace bubblescope::tools {

/// Returns width and colour of stdout: colour on a terminal unless NO_COLOR is set; 80 columns
/// elsewhere, and under mpirun, whose terminals are not where the output ends up.
traces::DrawOptions detect_draw_options();

}  // namespace bubblescope::tools
