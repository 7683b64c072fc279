// Buffers that ranks hold for a time beside activations, in words.
//
//   outputs      rank 0 holds up to 2 until their sends end, 96 MiB; with a send budget of 1
//   gathered     rank 1 holds the weights of up to 2 stages, 4 GiB
#pragma once

#include <optional>
#include <string>

#include "sim/analysis/report.h"

namespace bubblescope::traces {

/// Writes a line for each kind that is counted, about the first rank that holds most.
std::string write_held_text(const BubbleReport& report, std::optional<std::int32_t> send_budget);

}  // namespace bubblescope::traces
