// The parts of ops in the text report.
#pragma once

#include <string>

#include "sim/analysis/report.h"

namespace bubblescope::traces {

/// Nothing unless ops have parts. Else the rank whose ops wait longest for collectives, what
/// contention adds to its parts, and the pair that takes longest:
///
///   exposed      18.1 ms of the ops of rank 0: B.combine 18 ms, F.dispatch 100 us
///   contention   the parts of rank 0 take 4 ms longer than alone
///   pair         128 ms, 4.5 ms of it exposed: B.combine 4.5 ms
std::string write_parts_text(const BubbleReport& report);

}  // namespace bubblescope::traces
