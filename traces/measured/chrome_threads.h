// Recognizes threads that are ranks: those on which the forwards of one process lie.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/measured/chrome_ranks.h"

namespace bubblescope::traces {

/// The ranks of ops by their threads; nullopt where processes are the ranks, as with threads that
/// share the micro-batches of a stage, or run a chunk each. Throws Error where it is unclear.
std::optional<ChromeRanks> rank_by_threads(const ChromeEvents& events,
                                           const std::vector<ChromeOp>& ops,
                                           const std::string& file);

}  // namespace bubblescope::traces
