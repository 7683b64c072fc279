// Gauss-Newton over the ops of one kind at a time.
#include "exec/calibration/kind_contention.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "exec/calibration/busy_ops.h"

namespace bubblescope::exec {

namespace {

constexpr double kTrimmed = 0.1;
constexpr double kMinWeight = 0;
constexpr double kMaxWeight = 10;
constexpr int kIterations = 4;
/// How strongly weights tend to 1, as a fraction of what the measured ops say about all of them.
constexpr double kPrior = 1e-3;

using Weights = std::array<double, kComputeKinds>;

/// A part of an op in which the same kinds ran beside it.
struct Stretch {
  double nanos = 0;
  double excess = 0;    ///< the usual slowdown with as many busy ranks, less 1
  Weights fractions{};  ///< of the ops beside it, by kind
};

struct Sample {
  double alone = 0;
  std::vector<Stretch> stretches;
};

Stretch make_stretch(Nanos nanos, KindCounts beside, std::size_t own,
                     const std::vector<Nanos>& times) {
  --beside[own];
  const std::int32_t others = std::accumulate(beside.begin(), beside.end(), 0);
  Stretch stretch{static_cast<double>(nanos)};
  if (others <= 0) return stretch;
  const std::size_t at = std::min(static_cast<std::size_t>(others), times.size() - 1);
  stretch.excess = static_cast<double>(times[at]) / static_cast<double>(times[0]) - 1;
  for (std::size_t kind = 0; kind < beside.size(); ++kind)
    stretch.fractions[kind] = static_cast<double>(beside[kind]) / others;
  return stretch;
}

/// [kind]: the ops that something slowed.
using Samples = std::array<std::vector<Sample>, kComputeKinds>;

void collect(Samples& samples, const Program& program, const Timeline& timeline,
             const ContendedTimes& times, std::int32_t ranks_per_device) {
  const auto of_device = find_busy_ops(program, timeline, ranks_per_device);
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (!is_busy_op(program, timeline, id)) continue;
    const Instruction& instruction = program.instructions[id];
    const auto kind = static_cast<std::size_t>(instruction.op.kind);
    const std::vector<Nanos>& own = times[static_cast<std::size_t>(instruction.op.stage)][kind];
    if (own.empty() || own[0] <= 0) continue;
    Sample sample{static_cast<double>(own[0]), {}};
    of_device.at(instruction.rank / ranks_per_device)
        .visit(timeline.start[id], timeline.end[id], [&](Nanos nanos, const KindCounts& busy) {
          sample.stretches.push_back(make_stretch(nanos, busy, kind, own));
        });
    const bool is_slowed = std::any_of(sample.stretches.begin(), sample.stretches.end(),
                                       [](const Stretch& stretch) { return stretch.excess > 0; });
    if (is_slowed) samples[kind].push_back(std::move(sample));
  }
}

/// How much more work than its own an op would have done with these weights, as a fraction, and how
/// that depends on each of them.
struct Residual {
  double error = 0;
  Weights slope{};
};

Residual find_residual(const Sample& sample, const Weights& weights) {
  double done = 0;
  Residual residual;
  for (const Stretch& stretch : sample.stretches) {
    const double weight =
        std::inner_product(weights.begin(), weights.end(), stretch.fractions.begin(), 0.0);
    const double slowdown = 1 + stretch.excess * weight;
    done += stretch.nanos / slowdown;
    const double slope = stretch.nanos * stretch.excess / (slowdown * slowdown * sample.alone);
    for (std::size_t kind = 0; kind < weights.size(); ++kind)
      residual.slope[kind] -= slope * stretch.fractions[kind];
  }
  residual.error = done / sample.alone - 1;
  return residual;
}

using WeightMatrix = std::array<Weights, kComputeKinds>;

/// Solves a system with a positive definite matrix by elimination.
Weights solve(WeightMatrix matrix, Weights right) {
  for (std::size_t row = 0; row < right.size(); ++row)
    for (std::size_t below = row + 1; below < right.size(); ++below) {
      const double factor = matrix[below][row] / matrix[row][row];
      for (std::size_t column = row; column < right.size(); ++column)
        matrix[below][column] -= factor * matrix[row][column];
      right[below] -= factor * right[row];
    }
  for (std::size_t row = right.size(); row-- > 0;) {
    for (std::size_t column = row + 1; column < right.size(); ++column)
      right[row] -= matrix[row][column] * right[column];
    right[row] /= matrix[row][row];
  }
  return right;
}

/// One step towards the least squares.
Weights improve(const std::vector<Sample>& samples, const Weights& weights) {
  WeightMatrix matrix{};
  Weights gradient{};
  for (const Sample& sample : samples) {
    const Residual residual = find_residual(sample, weights);
    for (std::size_t row = 0; row < weights.size(); ++row) {
      gradient[row] += residual.slope[row] * residual.error;
      for (std::size_t column = 0; column < weights.size(); ++column)
        matrix[row][column] += residual.slope[row] * residual.slope[column];
    }
  }
  double trace = 0;
  for (std::size_t row = 0; row < weights.size(); ++row) trace += matrix[row][row];
  if (!(trace > 0)) return weights;
  for (std::size_t row = 0; row < weights.size(); ++row) {
    matrix[row][row] += kPrior * trace;
    gradient[row] += kPrior * trace * (weights[row] - 1);
  }
  const Weights change = solve(matrix, gradient);
  Weights better = weights;
  for (std::size_t kind = 0; kind < weights.size(); ++kind)
    better[kind] = std::clamp(weights[kind] - change[kind], kMinWeight, kMaxWeight);
  return better;
}

void remove_worst(std::vector<Sample>& samples, const Weights& weights) {
  std::vector<std::pair<double, std::size_t>> errors;
  for (std::size_t at = 0; at < samples.size(); ++at)
    errors.emplace_back(std::abs(find_residual(samples[at], weights).error), at);
  std::sort(errors.begin(), errors.end());
  errors.resize(errors.size() -
                static_cast<std::size_t>(kTrimmed * static_cast<double>(errors.size())));
  std::vector<Sample> kept;
  for (const auto& [error, at] : errors) kept.push_back(std::move(samples[at]));
  samples = std::move(kept);
}

Weights fit(std::vector<Sample> samples) {
  Weights weights;
  weights.fill(1);
  for (int iteration = 0; iteration < kIterations; ++iteration) weights = improve(samples, weights);
  remove_worst(samples, weights);
  for (int iteration = 0; iteration < kIterations; ++iteration) weights = improve(samples, weights);
  for (double& weight : weights) weight = std::round(weight * 1000) / 1000;
  return weights;
}

}  // namespace

std::optional<KindWeights> fit_kind_weights(std::span<const Observation> observations,
                                            const ContendedTimes& times,
                                            std::int32_t ranks_per_device) {
  Samples samples;
  for (const Observation& observation : observations)
    for (const Timeline& timeline : observation.steps)
      collect(samples, observation.program, timeline, times, ranks_per_device);
  KindWeights weights = equal_kind_weights();
  bool any = false;
  for (std::size_t kind = 0; kind < samples.size(); ++kind) {
    if (samples[kind].empty()) continue;
    weights[kind] = fit(std::move(samples[kind]));
    any = true;
  }
  return any ? std::optional(weights) : std::nullopt;
}

}  // namespace bubblescope::exec
