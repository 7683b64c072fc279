// Finds messages that waited for their receiver. A message that ends exactly when an op of its
// receiver ends had arrived before, while that op ran: its own time is unknown, and the measured
// one is only an upper bound.
#pragma once

#include <vector>

#include "sim/analysis/stragglers.h"

namespace bubblescope::inline sim {

/// [instruction]: whether it is such a message. A message without any time waited for nothing.
std::vector<bool> find_waiting_messages(const ObservedStep& step);

}  // namespace bubblescope::inline sim
