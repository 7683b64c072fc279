// Formats amounts of memory.
#pragma once

#include <string>

#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// The amount in the largest fitting unit of 1024, with at least three digits: "512 B", "12.3 MiB",
/// "1.25 GiB". All tables and sentences that show bytes use this.
std::string format_bytes(Bytes bytes);

/// The amount in GiB without the unit, rounded as format_bytes rounds: "12.3", "0.05". For columns
/// whose heading states the unit.
std::string gibibytes_text(Bytes bytes);

}  // namespace bubblescope::inline sim
