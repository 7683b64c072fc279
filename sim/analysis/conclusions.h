// Reports without conclusions, for measured steps whose length the measured ops do not explain.
// Such a report keeps what was observed.
//
// It has no bubble, and its idle causes, lower bound, critical path and slack are empty. Every
// writer calls is_conclusive() before it shows one of these.
#pragma once

#include "sim/analysis/report.h"

namespace bubblescope::inline sim {

/// The report without its conclusions: ranks keep their busy and idle times.
BubbleReport remove_conclusions(BubbleReport report);

/// Returns false for a report that remove_conclusions() returned.
bool is_conclusive(const BubbleReport& report);

}  // namespace bubblescope::inline sim
