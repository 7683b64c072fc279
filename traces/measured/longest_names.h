// The names of activities that take the longest, for a sentence.
#pragma once

#include <string>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::traces {

struct TimedName {
  std::string text;  ///< as the sentence shows it
  Nanos time = 0;
};

/// Lists the three that take the longest, in this order: "'dw' (48), 'loss' (4), 'adam' (4),
/// others".
std::string list_longest(std::vector<TimedName> names);

}  // namespace bubblescope::traces
