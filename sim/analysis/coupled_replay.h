// Replays steps with some durations changed; a step takes as long as its slowest replica.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/analysis/slowdown.h"

namespace bubblescope::inline sim {

/// The durations of one replica's instructions in one step.
using Durations = std::vector<Nanos>;

/// Whether messages keep the time for which they waited for an op of their receiver to end. Without
/// it, a receiver that is faster takes them sooner.
enum class Waiting : std::uint8_t { kKept, kDropped };

/// The measured durations of every replica.
std::vector<Durations> as_measured(const ReplicatedStep& step);

/// Returns the durations of every replica of a step, with something changed.
using Mend = std::function<std::vector<Durations>(const ReplicatedStep& step)>;

/// The time of every step when its replicas are replayed with mended durations.
std::vector<double> replay_steps(std::span<const ReplicatedStep> steps, Waiting waiting,
                                 const Mend& mend);

double mean_of(const std::vector<double>& times);

}  // namespace bubblescope::inline sim
