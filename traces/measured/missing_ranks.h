// Finds the ranks of a job whose traces were not given.
#pragma once

#include <optional>
#include <string>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Says which ranks have traces, which have none, and what follows: "of the 4 ranks of the job the
/// traces of 0, 2 are given and those of 1, 3 are missing: ...". Files may state how many ranks
/// there are; where they do not, a stage that no trace runs shows that one is missing. nullopt
/// where no rank is known to be missing.
std::optional<std::string> describe_missing_ranks(const ObservedTrace& trace);

}  // namespace bubblescope::traces
