// Chooses the ranks that a report for people shows when there are more than fit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/analysis/report.h"

namespace bubblescope::traces {

/// The number of ranks that are shown unless all are asked for.
inline constexpr std::int32_t kShownRanks = 16;

/// Returns all ranks that were recorded where they are at most kShownRanks or `all` is set; else
/// kShownRanks of them in order: the first, the last, the busiest, the idlest, the one with the
/// highest peak, and others spread evenly.
std::vector<std::int32_t> choose_shown_ranks(const BubbleReport& report, bool all);

/// "16 of 64 ranks; `all_ranks` shows every one"; empty where all are shown.
std::string describe_shown_ranks(const BubbleReport& report, bool all);

}  // namespace bubblescope::traces
