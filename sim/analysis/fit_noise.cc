// Decomposes the logarithms of relative op times into effects.
#include "sim/analysis/fit_noise.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "sim/analysis/relative_times.h"
#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

constexpr double kRare = 0.05;      ///< as a fraction of the samples
constexpr double kOutside = 5;      ///< in robust standard deviations
constexpr double kMinSigma = 1e-6;  ///< below it is rounding
constexpr std::size_t kMinSteps = 3;
constexpr double kMinChange = 0.01;
constexpr double kMinChangeOfOne = 0.05;  ///< of a single worker: one of many may seem to change
constexpr double kSignificance = 6;
constexpr double kTakesPart = 0.5;  ///< of the mean change: a worker with less has not changed

/// Identifies a group of samples.
using Key = std::tuple<std::size_t, std::size_t, std::int32_t, std::int32_t>;

Key place_of(const OpSample& sample) {
  return {sample.replica, 0, sample.stage, static_cast<std::int32_t>(sample.kind)};
}
Key step_of(const OpSample& sample) { return {sample.step, 0, 0, 0}; }
Key length_of(const OpSample& sample) {
  return {sample.step, sample.replica, sample.microbatch, 0};
}
Key rank_of(const OpSample& sample) { return {sample.step, sample.replica, sample.rank, 0}; }

/// A weighted mean, and the weights' sums that say how far it can be off.
struct WeightedMean {
  double sum = 0;
  double weights = 0;
  double squares = 0;  ///< of the weights

  void add(double value, double weight) {
    sum += value * weight;
    weights += weight;
    squares += weight * weight;
  }
  double value() const { return weights == 0 ? 0 : sum / weights; }
  /// Returns the part of a single sample's variance that is left in the mean.
  double variance_left() const { return weights == 0 ? 0 : squares / (weights * weights); }
};

using Groups = std::map<Key, WeightedMean>;

/// One sample's deviation from its mean, and how much it counts.
struct Deviation {
  const OpSample* sample = nullptr;
  double value = 0;  ///< a logarithm
  double weight = 0;
};

/// Subtracts from every deviation the mean of its group, and returns the means.
Groups take_out(std::vector<Deviation>& deviations, Key (*key_of)(const OpSample&)) {
  Groups groups;
  for (const Deviation& one : deviations) groups[key_of(*one.sample)].add(one.value, one.weight);
  for (Deviation& one : deviations) one.value -= groups.at(key_of(*one.sample)).value();
  return groups;
}

std::vector<Deviation> find_deviations(std::span<const OpSample> samples,
                                       const std::vector<bool>& is_left_out) {
  Groups means;
  for (std::size_t at = 0; at < samples.size(); ++at)
    if (!is_left_out[at]) means[place_of(samples[at])].add(samples[at].time, 1);
  std::vector<Deviation> deviations;
  for (std::size_t at = 0; at < samples.size(); ++at) {
    const OpSample& sample = samples[at];
    if (is_left_out[at] || sample.time <= 0) continue;
    const double mean = means.at(place_of(sample)).value();
    deviations.push_back({&sample, std::log(sample.time / mean), mean});
  }
  take_out(deviations, place_of);
  return deviations;
}

/// Returns the variance of an effect: the variance of its groups' means, with so many degrees of
/// freedom, minus the part of it that other effects leave there. 0 unless it is significant, which
/// is over two standard errors of what the others alone would give.
double variance_of(const Groups& groups, double freedom, double left) {
  if (freedom <= 0) return 0;
  double squares = 0;
  for (const auto& [_, group] : groups) squares += group.value() * group.value();
  const double excess = squares / freedom - left;
  return excess > 2 * left * std::sqrt(2 / freedom) ? excess : 0;
}

double mean_variance_left(const Groups& groups) {
  double sum = 0;
  for (const auto& [_, group] : groups) sum += group.variance_left();
  return groups.empty() ? 0 : sum / static_cast<double>(groups.size());
}

double to_sigma(double variance) {
  const double sigma = std::sqrt(std::max(0.0, variance));
  return sigma < kMinSigma ? 0 : sigma;
}

double residual_variance(const std::vector<Deviation>& deviations, std::size_t parameters) {
  if (deviations.size() <= parameters) return 0;
  WeightedMean squares;
  for (const Deviation& one : deviations) squares.add(one.value * one.value, one.weight);
  const auto count = static_cast<double>(deviations.size());
  return squares.value() * count / (count - static_cast<double>(parameters));
}

/// The variances of all effects of one set of deviations; none if no op took any time.
Noise fit_effects(std::vector<Deviation> deviations) {
  if (deviations.empty()) return {};
  Groups places;
  for (const Deviation& one : deviations) places[place_of(*one.sample)].add(0, 1);
  const Groups steps = take_out(deviations, step_of);
  const Groups lengths = take_out(deviations, length_of);
  const Groups ranks = take_out(deviations, rank_of);
  const auto step_count = static_cast<double>(steps.size());
  const double length_count = static_cast<double>(lengths.size()) / step_count;
  const double rank_count = static_cast<double>(ranks.size()) / step_count;
  const double replicas = static_cast<double>(std::get<0>(places.rbegin()->first) + 1);
  const double rest =
      residual_variance(deviations, places.size() + steps.size() + lengths.size() + ranks.size());
  // Ranks' means over the steps, and in each step over the ranks, are 0 by now.
  const double per_replica = rank_count / replicas;
  const double of_rank = variance_of(ranks, replicas * (per_replica - 1) * (step_count - 1),
                                     rest * mean_variance_left(ranks));
  const double of_length =
      variance_of(lengths, static_cast<double>(lengths.size()) - step_count - replicas + 1,
                  rest * mean_variance_left(lengths) + of_rank / per_replica);
  const double of_step = variance_of(
      steps, step_count - 1,
      rest * mean_variance_left(steps) + of_length / length_count + of_rank / rank_count);
  Noise noise;
  noise.op_jitter = to_sigma(rest);
  noise.rank_jitter = to_sigma(of_rank);
  noise.sequence_length_jitter = to_sigma(of_length);
  noise.step_jitter = to_sigma(of_step);
  return noise;
}

/// Returns for every sample the logarithm of how much longer it took than the medians of its place
/// and of its micro-batch explain.
std::vector<double> find_excess(std::span<const OpSample> samples) {
  std::map<Key, std::vector<double>> times;
  for (const OpSample& sample : samples) times[place_of(sample)].push_back(sample.time);
  std::map<Key, double> usual;
  for (auto& [place, values] : times) usual[place] = quantile(std::move(values), 50);
  std::vector<double> excess;
  std::map<Key, std::vector<double>> of_length;
  for (const OpSample& sample : samples) {
    const double ratio = sample.time / std::max(1.0, usual.at(place_of(sample)));
    excess.push_back(std::log(std::max(ratio, 1e-9)));
    // Ops that take no time say nothing of the micro-batch.
    if (sample.time > 0) of_length[length_of(sample)].push_back(excess.back());
  }
  std::map<Key, double> lengths;
  for (auto& [key, values] : of_length) lengths[key] = quantile(std::move(values), 50);
  for (std::size_t at = 0; at < samples.size(); ++at)
    if (const auto length = lengths.find(length_of(samples[at])); length != lengths.end())
      excess[at] -= length->second;
  return excess;
}

}  // namespace

std::vector<bool> find_long_samples(const std::vector<double>& excess, double max_fraction,
                                    double min_ratio) {
  std::vector<double> sizes;
  for (const double value : excess) sizes.push_back(std::abs(std::log(value)));
  const double spread = robust_deviation(std::move(sizes));
  const double limit = std::max(std::log(min_ratio), kOutside * spread);
  std::vector<bool> found;
  for (const double value : excess) found.push_back(std::log(value) > limit);
  const auto count = std::count(found.begin(), found.end(), true);
  const bool are_few =
      static_cast<double>(count) <= max_fraction * static_cast<double>(found.size());
  return are_few ? found : std::vector<bool>(found.size(), false);
}

FittedNoise fit_noise(std::span<const OpSample> samples) {
  FittedNoise fitted;
  if (samples.empty()) return fitted;
  const std::vector<double> excess = find_excess(samples);
  for (const double value : excess) fitted.excess.push_back(std::exp(value));
  fitted.is_straggler = find_long_samples(fitted.excess, kRare);
  fitted.noise = fit_effects(find_deviations(samples, fitted.is_straggler));
  // Weighted by the time that the op usually takes: a slow op of a thousandth of the others' time
  // must not slow those down.
  WeightedMean factor;
  double usual_time = 0;
  for (std::size_t at = 0; at < samples.size(); ++at) {
    const double usual = samples[at].time / fitted.excess[at];
    usual_time += usual;
    if (fitted.is_straggler[at]) factor.add(fitted.excess[at], usual);
  }
  if (factor.weights == 0) return fitted;
  fitted.noise.stragglers.probability = factor.weights / usual_time;
  fitted.noise.stragglers.factor = factor.value();
  return fitted;
}

namespace {

/// The most significant change in a series, with one value per step.
struct Change {
  std::size_t first = 0;
  double size = 0;  ///< a logarithm
};

std::optional<Change> find_change(const std::vector<double>& speeds) {
  std::optional<Change> found;
  double max_change = kSignificance;
  for (std::size_t first = kMinSteps; first + kMinSteps <= speeds.size(); ++first) {
    WeightedMean before;
    WeightedMean after;
    for (std::size_t at = 0; at < speeds.size(); ++at)
      (at < first ? before : after).add(speeds[at], 1);
    double squares = 0;
    for (std::size_t at = 0; at < speeds.size(); ++at) {
      const double off = speeds[at] - (at < first ? before : after).value();
      squares += off * off;
    }
    const double variance = squares / static_cast<double>(speeds.size() - 2);
    const double error = std::sqrt(variance * (1 / before.weights + 1 / after.weights));
    const double change = after.value() - before.value();
    if (std::abs(change) <= kMinChange || std::abs(change) <= max_change * error) continue;
    max_change = error > 0 ? std::abs(change) / error : HUGE_VAL;
    found = {first, change};
  }
  return found;
}

/// How much slower every step was than the mean one, as a logarithm.
std::vector<double> find_speeds(const std::vector<Deviation>& deviations) {
  Groups steps;
  for (const Deviation& one : deviations) steps[step_of(*one.sample)].add(one.value, one.weight);
  std::vector<double> speeds;
  for (const auto& [_, group] : steps) speeds.push_back(group.value());
  return speeds;
}

std::map<Worker, std::vector<Deviation>> divide_by_worker(
    const std::vector<Deviation>& deviations) {
  std::map<Worker, std::vector<Deviation>> of_workers;
  for (const Deviation& one : deviations) of_workers[worker_of(*one.sample)].push_back(one);
  return of_workers;
}

/// Returns the mean change of the deviations at a step: after it against before it.
WeightedMean find_change_at(const std::vector<Deviation>& deviations, std::size_t first) {
  WeightedMean before;
  WeightedMean after;
  for (const Deviation& one : deviations)
    (one.sample->step < first ? before : after).add(one.value, one.weight);
  return {(after.value() - before.value()) * after.weights, after.weights, after.squares};
}

}  // namespace

std::optional<Drift> find_drift(std::span<const OpSample> samples) {
  const std::vector<Deviation> deviations =
      find_deviations(samples, std::vector<bool>(samples.size(), false));
  const auto of_workers = divide_by_worker(deviations);
  if (const std::optional<Change> common = find_change(find_speeds(deviations))) {
    Drift drift{common->first, std::exp(common->size) - 1};
    WeightedMean of_changed;
    for (const auto& [worker, own] : of_workers) {
      const WeightedMean change = find_change_at(own, common->first);
      if (change.value() / common->size < kTakesPart) continue;
      drift.workers.push_back(worker);
      of_changed.add(change.value(), change.weights);
    }
    if (drift.workers.size() == of_workers.size()) drift.workers.clear();
    if (!drift.workers.empty()) drift.change = std::exp(of_changed.value()) - 1;
    return drift;
  }
  std::optional<Drift> found;
  for (const auto& [worker, own] : of_workers) {
    const std::optional<Change> change = find_change(find_speeds(own));
    const double known = found ? std::abs(std::log1p(found->change)) : kMinChangeOfOne;
    if (!change || std::abs(change->size) <= known) continue;
    found = Drift{change->first, std::exp(change->size) - 1, {worker}};
  }
  return found;
}

}  // namespace bubblescope::inline sim
