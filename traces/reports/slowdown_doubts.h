// Doubts about a slowdown S that is not what it is taken for.
//
// Everything that shows S shows these sentences as well: as reservations or notes of the report, or
// beside the number.
#pragma once

#include <optional>
#include <string>

#include "sim/analysis/cause.h"
#include "sim/analysis/slowdown.h"
#include "traces/reports/iterations.h"

namespace bubblescope::traces {

/// Says that a replay of the whole steps misses the measured ones; nullopt where it does not.
/// `late` is the replica among the causes that begins late, if there is one.
std::optional<std::string> doubt_replay(const Iterations& iterations,
                                        const std::optional<Cause>& late);

/// Says why S is below 1, as it is printed: the step is longer with everything at its mean or
/// median, which is then no ideal one. Names the kind that makes most of the difference. nullopt
/// where S is 1 or more.
///   S is 0.953: with every op at the mean of its kind (messages: the median) the pipeline would
///   take 12.1 ms longer than it did, 10.3 ms of it through the mean of B alone; so that is no
///   ideal step, and S does not tell what can be gained
std::optional<std::string> explain_low_slowdown(const SlowdownReport& slowdown);

/// Adds that sentence: to the reservations where S is under 0.95, and to the notes elsewhere.
/// Nothing where there is no S, or where the steps are not trusted.
Iterations with_slowdown_doubt(Iterations iterations);

}  // namespace bubblescope::traces
