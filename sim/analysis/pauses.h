// Time that ranks lose between and within ops without waiting for an input.
//
// A *gap* is the time from when an op could start (its input has arrived and the op before it on
// its rank has ended) to when it did: the rank was busy elsewhere, usually its host. A gap is a
// *pause* if it is long and rare: over a quarter of the rank's median op and five times its median
// gap, for at most 5 % of its ops; garbage collection looks like this. A rank with many gaps is
// launch-bound: its host launches work later than the device could run it. A pause may also show as
// a single op that takes far longer than usual (a straggler, fit_noise.h). Where a recording shows
// no messages, an op that needs one may have waited for it, so that its gap counts as an unseen
// message unless it is a pause.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/analysis/coupled_replay.h"

namespace bubblescope::inline sim {

enum class GapKind : std::uint8_t { kLaunch, kPause, kUnseenMessage };

/// Adds each op's gap to its own time, but for those of the kind `without`. With all gaps, ops end
/// when they did.
Counterfactual with_gaps(std::optional<GapKind> without = {});

/// Returns the total of the gaps of a kind on each rank, over all steps.
std::vector<Nanos> sum_gaps(std::span<const ReplicatedStep> steps, GapKind kind);

/// The mean launch gaps, in nanoseconds.
struct LaunchGaps {
  double behind_ops = 0;       ///< of ops that waited last for the op before them on their rank
  double behind_messages = 0;  ///< of ops that waited last for a message or for another lane
};

LaunchGaps find_launch_gaps(std::span<const ReplicatedStep> steps);

/// Returns the number of pauses in all steps.
std::int64_t count_pauses(std::span<const ReplicatedStep> steps);

/// Returns for each rank all of its gaps, as a fraction of the time from the first op of its
/// pipeline to the last.
std::vector<double> find_gap_shares(std::span<const ReplicatedStep> steps);

}  // namespace bubblescope::inline sim
