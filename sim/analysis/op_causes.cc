// Makes ops as long as usual, by their samples, steps, stages and micro-batches.
#include "sim/analysis/op_causes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/analysis/equal_work.h"
#include "sim/analysis/length_correlation.h"
#include "sim/analysis/long_ops.h"
#include "sim/analysis/slow_steps.h"
#include "sim/analysis/slow_workers.h"
#include "sim/analysis/unequal_stage.h"

namespace bubblescope::inline sim {

namespace {

constexpr double kGrowTogether = 0.9;
constexpr double kUnequal = 1.02;     ///< work of a stage, below which its ops differ by chance
constexpr double kLongOfMany = 1.15;  ///< times that ops take at least, if they are not rare
constexpr double kMaxLongFraction = 0.25;  ///< of all ops: where more are long, all are unequal
constexpr double kMaxScattered = 0.15;     ///< of all ops: where more are, usual times are unsure

/// Whether all workers that a drift is of are slow ones, which are causes of their own.
bool is_of_slow_workers(const Drift& drift, const CauseEvidence& evidence) {
  return !drift.workers.empty() &&
         std::all_of(drift.workers.begin(), drift.workers.end(),
                     [&](const Worker& worker) { return evidence.is_slow(worker); });
}

/// Per sample, how many times as long it takes as before the drift.
std::vector<double> find_drifted(const Drift& drift, const CauseEvidence& evidence) {
  std::vector<double> factors;
  for (const OpSample& sample : evidence.samples) {
    const bool has_changed = sample.step >= drift.first_step &&
                             (drift.workers.empty() || evidence.has_drifted(worker_of(sample)));
    factors.push_back(has_changed ? 1 + drift.change : 1);
  }
  return factors;
}

/// Whether the worker of long ops is as fast as usual in many ops of the same steps; else it is
/// slow in whole steps (sim/analysis/slow_steps.h), though not all of its ops are called long.
bool are_some_microbatches(const CauseEvidence& evidence, const LongOps& long_ops) {
  constexpr double kMaxSlowOps = 0.75;
  std::set<std::size_t> steps;
  for (std::size_t at = 0; at < evidence.samples.size(); ++at)
    if (long_ops.is_long[at] && worker_of(evidence.samples[at]) == *long_ops.worker)
      steps.insert(evidence.samples[at].step);
  double slow = 0;
  double all = 0;
  for (std::size_t at = 0; at < evidence.samples.size(); ++at) {
    const OpSample& sample = evidence.samples[at];
    if (worker_of(sample) != *long_ops.worker || !steps.contains(sample.step)) continue;
    slow += evidence.noise.excess[at] >= kLongOfMany ? 1 : 0;
    ++all;
  }
  return slow < kMaxSlowOps * all;
}

/// Whether these are the ops of a worker that is slow in whole steps, which is a cause of its own.
bool are_of_slow_steps(const CauseEvidence& evidence, const LongOps& long_ops) {
  if (!long_ops.worker || are_some_microbatches(evidence, long_ops)) return false;
  const std::vector<SlowSteps> slow = find_slow_steps(evidence.steps, {});
  return std::any_of(slow.begin(), slow.end(),
                     [&](const SlowSteps& one) { return one.worker == *long_ops.worker; });
}

/// Finds ops that are long and rare. More and shorter ones count too if nearly all belong to one
/// worker, or if they are scattered over several.
LongOps find_long_ops(const CauseEvidence& evidence) {
  const std::vector<double>& excess = evidence.noise.excess;
  LongOps found = describe_long_ops(evidence.samples, evidence.noise.is_straggler, excess);
  for (const double min_ratio : {kLongOp, kLongOfMany}) {
    LongOps many = describe_long_ops(
        evidence.samples, find_long_samples(excess, kMaxLongFraction, min_ratio), excess);
    if (many.count <= found.count) continue;
    const bool is_found =
        many.worker ? !evidence.has_drifted(*many.worker) &&
                          (min_ratio == kLongOp || are_some_microbatches(evidence, many))
                    : static_cast<double>(many.count) <=
                              kMaxScattered * static_cast<double>(evidence.samples.size()) &&
                          are_scattered(evidence.samples, many.is_long);
    if (is_found) found = std::move(many);
  }
  if (are_of_slow_steps(evidence, found)) return {};
  return found;
}

}  // namespace

void add_long_ops(CauseList& causes, const CauseEvidence& evidence) {
  const std::vector<double>& excess = evidence.noise.excess;
  const LongOps long_ops = find_long_ops(evidence);
  if (long_ops.count == 0) return;
  std::vector<double> factors;
  for (std::size_t at = 0; at < excess.size(); ++at)
    factors.push_back(long_ops.is_long[at] ? excess[at] : 1);
  const Counterfactual usual = evidence.shorten(factors);
  causes.add({InterruptedOps{long_ops.count, long_ops.factor, long_ops.worker, long_ops.steps}},
             usual);
  causes.take_as_base(CauseKind::kPause, usual);
}

std::optional<ManyLongOps> find_many_long_ops(const CauseEvidence& evidence) {
  const std::vector<double>& excess = evidence.noise.excess;
  const LongOps many = describe_long_ops(
      evidence.samples, find_long_samples(excess, kMaxLongFraction, kLongOfMany), excess);
  const double fraction =
      static_cast<double>(many.count) / static_cast<double>(evidence.samples.size());
  if (many.worker || !(fraction > kMaxScattered)) return {};
  if (!are_scattered(evidence.samples, many.is_long)) return {};
  return ManyLongOps{fraction, many.factor};
}

void add_drift(CauseList& causes, const CauseEvidence& evidence) {
  const std::optional<Drift>& drift = evidence.drift;
  if (!drift || drift->change <= 0 || is_of_slow_workers(*drift, evidence)) return;
  const SlowerOps slower{drift->workers, 1 + drift->change,
                         static_cast<std::int64_t>(drift->first_step)};
  const Counterfactual counterfactual = evidence.shorten(find_drifted(*drift, evidence));
  if (causes.add({slower}, counterfactual) && !slower.workers.empty() &&
      slower.factor > kClearlySlow)
    causes.take_as_base(CauseKind::kDrift, counterfactual);
}

void add_common_slow_steps(CauseList& causes, const CauseEvidence& evidence) {
  const std::optional<Drift>& drift = evidence.drift;
  if (drift && drift->change > 0 && drift->workers.empty()) return;
  const CommonSlowSteps slow = find_common_slow_steps(evidence.steps, causes.base());
  if (slow.steps == 0) return;
  causes.add({SlowOnMostRanks{slow.factor, slow.steps, slow.are_first}}, with_usual_time(slow));
}

void add_unequal_work(CauseList& causes, const CauseEvidence& evidence) {
  const UnequalStage stage = find_unequal_stage(evidence.steps, causes.base());
  if (std::max(stage.factor, 1 / stage.factor) >
      std::max(kUnequal, 1 + evidence.chance.between_ranks))
    causes.add({stage}, with_equal_stages(evidence.steps.front().front()));
  const std::optional<double> together = correlate_lengths(evidence.steps, causes.base());
  if (!together || *together < kGrowTogether) return;
  causes.add({UnequalMicrobatches{*together}}, with_equal_lengths());
}

void add_variation(CauseList& causes) {
  if (!causes.has(CauseKind::kSequenceLengths))  // which the same counterfactual removes
    causes.add({UnevenOps{}}, with_equal_lengths());
}

}  // namespace bubblescope::inline sim
