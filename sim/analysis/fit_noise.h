// Fits noise (sim/model/noise.h) to measured steps.
//
// Every op's time is divided by the mean of its replica, stage and kind. The logarithm of this
// ratio is a sum of effects, which are estimated one after the other, each as a mean weighted by
// time:
//   step     common to all ops of a step                        -> step_jitter
//   length   common to all ops of a micro-batch in its replica  -> sequence_length_jitter
//   rank     common to all ops of a rank in a step              -> rank_jitter
//   rest                                                        -> op_jitter
// The variance of each effect's means exceeds that of the effect by what is left of the others in a
// mean; this excess is subtracted. Ops that take over 1.5 times as long as their step, micro-batch
// and stage explain are stragglers if they are rare: they count in no mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/analysis/op_samples.h"
#include "sim/model/noise.h"

namespace bubblescope::inline sim {

struct FittedNoise {
  Noise noise;                     ///< lognormal; sigmas are 0 where the steps show no spread
  std::vector<bool> is_straggler;  ///< per sample
  std::vector<double> excess;      ///< per sample: its time over what medians explain
};

/// Fits the noise of compute ops; messages have none.
FittedNoise fit_noise(std::span<const OpSample> samples);

/// An op is long from this many times the explained time, on any worker.
inline constexpr double kLongOp = 1.5;

/// Whether each sample took far longer than explained: over `min_ratio` times as long, and beyond
/// the usual spread of `excess`. None if more than `max_fraction` of them did.
std::vector<bool> find_long_samples(const std::vector<double>& excess, double max_fraction,
                                    double min_ratio = kLongOp);

/// A rank of a replica.
struct Worker {
  std::int32_t replica = 0;
  std::int32_t rank = 0;
  auto operator<=>(const Worker&) const = default;
};

inline Worker worker_of(const OpSample& sample) {
  return {static_cast<std::int32_t>(sample.replica), sample.rank};
}

/// A lasting change of speed: from one step on, ops take longer, or less long.
struct Drift {
  std::size_t first_step = 0;        ///< the first that has changed
  double change = 0;                 ///< of the ops' times, as a fraction: 0.05 is 5 % slower
  std::vector<Worker> workers = {};  ///< whose ops have changed; empty: all
};

/// The most significant change between two steps; empty if none is significant: the mean before
/// and after must differ by over 1 % and by over six standard errors, with three steps on each
/// side. If no change of all ops together is, that of a single worker is sought, of over 5 %.
std::optional<Drift> find_drift(std::span<const OpSample> samples);

}  // namespace bubblescope::inline sim
