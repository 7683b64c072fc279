// Text for amounts of memory.
#pragma once

#include <string>

#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// "512 B", "12.3 MiB", "1.25 GiB": the largest unit of 1024 that fits, with at least three digits.
/// Every table and sentence that shows bytes uses it.
std::string format_bytes(Bytes bytes);

/// "12.3", "0.05": in GiB, rounded as format_bytes rounds, for columns whose head says GiB.
std::string gibibytes_text(Bytes bytes);

}  // namespace bubblescope::inline sim
