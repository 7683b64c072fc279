// Adds up the variances of effects, each divided by how often it occurs.
#include "sim/analysis/chance.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "sim/analysis/mean.h"

namespace bubblescope::inline sim {

namespace {

constexpr double kErrors = 3.5;
constexpr double kOfMedian = 1.5708;  ///< the variance of a median over that of a mean

using Place = std::tuple<std::size_t, std::int32_t, OpKind>;        // replica, stage
using Microbatch = std::pair<std::size_t, std::int32_t>;            // step
using Lengths = std::map<Microbatch, std::map<std::size_t, Mean>>;  // by replica

/// Returns the logarithm of how much longer than usual every micro-batch is.
Lengths find_lengths(std::span<const OpSample> samples) {
  std::map<Place, Mean> usual;
  for (const OpSample& one : samples) usual[{one.replica, one.stage, one.kind}].add(one.time);
  Lengths lengths;
  for (const OpSample& one : samples) {
    const double mean = usual.at({one.replica, one.stage, one.kind}).value();
    if (one.time > 0)
      lengths[{one.step, one.microbatch}][one.replica].add(std::log(one.time / mean));
  }
  return lengths;
}

/// Returns the variance of the lengths of micro-batches that have the same number in different
/// replicas of one step.
double find_length_variance(const Lengths& lengths) {
  Mean variance;
  for (const auto& [_, of_replicas] : lengths) {
    if (of_replicas.size() < 2) continue;
    Mean mean;
    for (const auto& [replica, length] : of_replicas) mean.add(length.value());
    double squares = 0;
    for (const auto& [replica, length] : of_replicas)
      squares += std::pow(length.value() - mean.value(), 2);
    variance.add(squares / (mean.count - 1));
  }
  return variance.value();
}

double add_up(double variance) { return kErrors * std::sqrt(2 * kOfMedian * variance); }

}  // namespace

Chance find_chance(std::span<const OpSample> samples, const Noise& noise) {
  if (samples.empty()) return {};
  std::set<std::pair<std::size_t, std::int32_t>> workers;
  std::set<std::size_t> steps;
  for (const OpSample& one : samples) {
    workers.emplace(one.replica, one.rank);
    steps.insert(one.step);
  }
  const Lengths lengths = find_lengths(samples);
  const auto ops = static_cast<double>(samples.size()) / static_cast<double>(workers.size());
  const double of_ranks = std::pow(noise.op_jitter, 2) / ops +
                          std::pow(noise.rank_jitter, 2) / static_cast<double>(steps.size());
  const double of_lengths = find_length_variance(lengths) / static_cast<double>(lengths.size());
  return {add_up(of_ranks), add_up(of_ranks + of_lengths)};
}

}  // namespace bubblescope::inline sim
