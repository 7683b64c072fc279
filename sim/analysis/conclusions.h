// A report on measured steps that their ops do not explain: what was seen, and nothing concluded.
//
// Its bubble ratios are not a number, and bubble time, idle causes, lower bound, critical path and
// slack are empty. Every writer asks is_conclusive() before it shows one of these.
#pragma once

#include "sim/analysis/report.h"

namespace bubblescope::inline sim {

/// The report without its conclusions: ranks keep their busy and idle times.
BubbleReport remove_conclusions(BubbleReport report);

/// False of what remove_conclusions() returned.
bool is_conclusive(const BubbleReport& report);

}  // namespace bubblescope::inline sim
