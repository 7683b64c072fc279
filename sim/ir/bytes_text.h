// How amounts of memory are written for people.
#pragma once

#include <string>

#include "sim/ir/units.h"

namespace bubblescope {

/// "512 B", "12.3 MiB", "1.25 GiB": three digits or more in the largest unit of 1024 that shows the
/// amount. Every table and sentence with bytes uses it.
std::string bytes_text(Bytes bytes);

/// "12.3", "0.05": in GiB, rounded as bytes_text rounds, for columns whose head says GiB.
std::string gibibytes_text(Bytes bytes);

}  // namespace bubblescope
