// Estimates what each cause costs by replaying all replicas with that cause removed.
#include "sim/analysis/causes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/analysis/coupled_replay.h"
#include "sim/analysis/fit_noise.h"
#include "sim/analysis/pauses.h"
#include "sim/analysis/slow_workers.h"
#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

constexpr double kGrowTogether = 0.9;
constexpr double kMaxDropped = 0.02;  ///< as a fraction of the step
constexpr std::size_t kFewestSamples = 8;

/// A running mean.
struct Mean {
  double sum = 0;
  double count = 0;
  void add(double value) {
    sum += value;
    ++count;
  }
  double value() const { return sum / count; }
};

/// Gives every compute op the mean duration of the ops with the same key, over all replicas of the
/// step.
template <class KeyOf>
Mend with_means(KeyOf key_of) {
  return [key_of](const ReplicatedStep& step, std::vector<Durations>& durations) {
    std::map<decltype(key_of(std::size_t{}, Op{})), Mean> means;
    for (std::size_t replica = 0; replica < step.size(); ++replica)
      step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
        means[key_of(replica, one.op)].add(static_cast<double>(durations[replica][id]));
      });
    for (std::size_t replica = 0; replica < step.size(); ++replica)
      step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
        durations[replica][id] = std::llround(means.at(key_of(replica, one.op)).value());
      });
  };
}

/// Stages beside the chain keep their times.
Mend with_equal_stages(const ObservedStep& like) {
  return with_means([like](std::size_t replica, const Op& op) {
    const std::int32_t stage = like.is_beside(op) ? op.stage : -1;
    return std::tuple(replica, op.kind, op.microbatch, op.slice, stage);
  });
}

Mend with_equal_lengths() {
  return with_means(
      [](std::size_t, const Op& op) { return std::tuple(op.kind, op.stage, op.slice); });
}

void with_free_messages(const ReplicatedStep& step, std::vector<Durations>& durations) {
  for (std::size_t replica = 0; replica < step.size(); ++replica)
    for (InstructionId id = 0; id < durations[replica].size(); ++id)
      if (is_message(step[replica].program.instructions[id])) durations[replica][id] = 0;
}

/// The stage with the most work, and its work relative to the mean over the stages.
Cause largest_stage(std::span<const ReplicatedStep> steps, std::span<const Mend> mended) {
  std::map<std::int32_t, double> work;
  std::map<std::int32_t, std::int32_t> rank_of;
  for (const ReplicatedStep& step : steps) {
    const std::vector<Durations> durations = mend_durations(step, mended);
    for (std::size_t replica = 0; replica < step.size(); ++replica)
      step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
        if (step[replica].is_beside(one.op)) return;
        work[one.op.stage] += static_cast<double>(durations[replica][id]);
        rank_of[one.op.stage] = one.rank;
      });
  }
  const auto largest = std::max_element(
      work.begin(), work.end(),
      [](const auto& left, const auto& right) { return left.second < right.second; });
  double all = 0;
  for (const auto& [_, time] : work) all += time;
  Cause cause{CauseKind::kStage};
  cause.stage = largest->first;
  cause.rank = rank_of.at(largest->first);
  if (all > 0) cause.factor = largest->second * static_cast<double>(work.size()) / all;
  return cause;
}

/// The correlation between the forward and backward times of a micro-batch, from -1 to 1; empty if
/// there are too few micro-batches or their times do not vary.
std::optional<double> correlation(std::span<const ReplicatedStep> steps,
                                  std::span<const Mend> mended) {
  std::vector<std::pair<double, double>> samples;
  for (const ReplicatedStep& step : steps) {
    const std::vector<Durations> durations = mend_durations(step, mended);
    for (std::size_t replica = 0; replica < step.size(); ++replica) {
      std::map<std::int32_t, std::pair<double, double>> of_microbatch;
      step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
        auto& [forward, backward] = of_microbatch[one.op.microbatch];
        (one.op.kind == OpKind::kForward ? forward : backward) +=
            static_cast<double>(durations[replica][id]);
      });
      for (const auto& [_, times] : of_microbatch) samples.push_back(times);
    }
  }
  if (samples.size() < kFewestSamples) return {};
  Mean forward;
  Mean backward;
  for (const auto& [f, b] : samples) {
    forward.add(f);
    backward.add(b);
  }
  double both = 0;
  double forwards = 0;
  double backwards = 0;
  for (const auto& [f, b] : samples) {
    both += (f - forward.value()) * (b - backward.value());
    forwards += (f - forward.value()) * (f - forward.value());
    backwards += (b - backward.value()) * (b - backward.value());
  }
  if (forwards == 0 || backwards == 0) return {};
  return both / std::sqrt(forwards * backwards);
}

/// Collects causes by replaying with each of them removed.
class CauseFinder {
 public:
  explicit CauseFinder(const CoupledSteps& coupled)
      : coupled_(coupled), steps_(coupled.steps()), replayed_(replay({})) {}

  double replayed() const { return mean_of(replayed_); }

  /// Single ops that take far longer than others. The other causes are what is left without them,
  /// so that their time is not counted twice.
  void find_long_ops() {
    const FittedNoise noise = fit_noise(samples_);
    Cause pauses{CauseKind::kPause};
    pauses.within_ops = true;
    pauses.count = std::count(noise.is_straggler.begin(), noise.is_straggler.end(), true);
    pauses.factor = noise.noise.stragglers.factor;
    if (pauses.count == 0) return;
    const Mend usual =
        shorten([&](std::size_t at) { return noise.is_straggler[at] ? noise.excess[at] : 1.0; });
    add(pauses, usual);
    without_long_ops_ = {usual};
    without_long_ops_times_ = replay(without_long_ops_);
  }

  void find_unequal_work() {
    add(largest_stage(steps_, without_long_ops_), with_equal_stages(steps_.front().front()));
    const std::optional<double> together = correlation(steps_, without_long_ops_);
    if (!together || *together < kGrowTogether) return;
    Cause cause{CauseKind::kSequenceLengths};
    cause.factor = *together;
    add(cause, with_equal_lengths());
  }

  void find_slow_workers() {
    if (steps_.front().size() < 2) return;
    const auto workers = std::make_shared<const Workers>(steps_);
    for (const Cause& worker : workers->slow())
      add(worker, [workers, worker](const ReplicatedStep& step, std::vector<Durations>& durations) {
        workers->mend(step, worker, durations);
      });
  }

  void find_messages() { add(Cause{CauseKind::kCommunication}, with_free_messages); }

  /// A lasting change of speed.
  void find_drift() {
    const std::optional<Drift> drift = sim::find_drift(samples_);
    if (!drift || drift->change <= 0) return;
    Cause change{CauseKind::kDrift};
    change.factor = 1 + drift->change;
    change.steps = static_cast<std::int64_t>(drift->first_step);
    add(change, shorten([&](std::size_t at) {
          return samples_[at].step < drift->first_step ? 1 : change.factor;
        }));
  }

  /// Gaps make the steps longer than their replay, so they have a baseline of their own.
  void find_gaps() {
    const std::vector<double> all = replay({with_gaps(Gaps::kAll)});
    Cause launch{CauseKind::kLaunch};
    const std::vector<Nanos> sums = sum_launch_gaps(steps_);
    const auto largest = std::max_element(sums.begin(), sums.end());
    launch.rank = static_cast<std::int32_t>(largest - sums.begin());
    launch.factor = static_cast<double>(*largest) / (total(all) * replicas());
    compare(launch, all, replay({with_gaps(Gaps::kOnlyPauses)}));
    Cause pauses{CauseKind::kPause};
    pauses.count = count_pauses(steps_);
    if (pauses.count > 0) compare(pauses, all, replay({with_gaps(Gaps::kOnlyLaunches)}));
  }

  /// Returns the time that removing all causes at once saves.
  Nanos find_saved_together() const {
    return std::llround(mean_of(replay({with_gaps(Gaps::kAll)})) - mean_of(replay(mends_)));
  }

  std::vector<Cause> ranked() && {
    std::stable_sort(causes_.begin(), causes_.end(), [](const Cause& left, const Cause& right) {
      return left.saves > right.saves;
    });
    return std::move(causes_);
  }

 private:
  static double total(const std::vector<double>& times) {
    return std::accumulate(times.begin(), times.end(), 0.0);
  }
  double replicas() const { return static_cast<double>(steps_.front().size()); }

  std::vector<double> replay(const std::vector<Mend>& mends) const {
    return coupled_.replay(Waiting::kDropped, mends);
  }

  /// Compares with what is left without long ops.
  void add(const Cause& cause, const Mend& mend) {
    std::vector<Mend> mends = without_long_ops_;
    mends.push_back(mend);
    if (compare(cause, without_long_ops_times_, replay(mends))) mends_.push_back(mend);
  }

  /// Keeps a cause whose removal makes the mean step shorter.
  bool compare(Cause cause, const std::vector<double>& with, const std::vector<double>& without) {
    cause.saves = std::llround(mean_of(with) - mean_of(without));
    if (cause.saves <= 0) return false;
    cause.left = std::llround(mean_of(without));
    std::vector<double> saved;
    for (std::size_t at = 0; at < with.size(); ++at) saved.push_back(with[at] - without[at]);
    cause.saves_p5 = std::llround(quantile(saved, 5));
    cause.saves_p95 = std::llround(quantile(saved, 95));
    causes_.push_back(cause);
    return true;
  }

  /// Divides the durations of every sample's ops by factor_of(index of the sample).
  template <class FactorOf>
  Mend shorten(FactorOf factor_of) const {
    using Key = std::tuple<std::size_t, std::int32_t, std::int32_t, OpKind>;
    std::vector<std::map<Key, double>> factors(steps_.size());
    for (std::size_t at = 0; at < samples_.size(); ++at) {
      const OpSample& one = samples_[at];
      factors[one.step][{one.replica, one.stage, one.microbatch, one.kind}] = factor_of(at);
    }
    return [this, factors = std::move(factors)](const ReplicatedStep& step,
                                                std::vector<Durations>& durations) {
      const auto number = static_cast<std::size_t>(&step - steps_.data());
      for (std::size_t replica = 0; replica < step.size(); ++replica)
        step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
          const double factor =
              factors[number].at({replica, one.op.stage, one.op.microbatch, one.op.kind});
          durations[replica][id] =
              std::llround(static_cast<double>(durations[replica][id]) / factor);
        });
    };
  }

  const CoupledSteps& coupled_;
  std::span<const ReplicatedStep> steps_;
  std::vector<OpSample> samples_ =
      collect_samples(steps_, std::numeric_limits<std::int32_t>::max());
  std::vector<double> replayed_;
  std::vector<Mend> without_long_ops_;  ///< at most one
  std::vector<double> without_long_ops_times_ = replayed_;
  std::vector<Mend> mends_;  ///< of the causes, in an order in which they can be applied
  std::vector<Cause> causes_;
};

}  // namespace

CauseReport find_causes(std::span<const ReplicatedStep> steps,
                        std::span<const std::vector<OuterWork>> works) {
  CauseReport report;
  // If messages leave some time after their op ended, only the waiting time keeps the replay as
  // long as the measured step. Without it, the replay says nothing about causes.
  const CoupledSteps coupled(steps, works);
  const double as_it_was = mean_of(coupled.replay(Waiting::kKept, {}));
  CauseFinder finder(coupled);
  report.is_known = std::abs(finder.replayed() - as_it_was) <= kMaxDropped * as_it_was;
  report.replayed = std::llround(finder.replayed());
  if (!report.is_known) return report;
  finder.find_long_ops();
  finder.find_drift();
  finder.find_slow_workers();
  finder.find_unequal_work();
  finder.find_messages();
  finder.find_gaps();
  report.saved_together = finder.find_saved_together();
  report.causes = std::move(finder).ranked();
  return report;
}

std::vector<Cause> find_exposed_works(const SlowdownReport& slowdown) {
  std::vector<Cause> causes;
  for (const WorkSlowdown& work : slowdown.by_work) {
    if (!work.communicates) continue;
    Cause cause{CauseKind::kCommunication};
    cause.collective = work.name;
    cause.saves = std::accumulate(work.saves.begin(), work.saves.end(), Nanos{0}) /
                  static_cast<Nanos>(work.saves.size());
    cause.left = slowdown.replayed - cause.saves;
    cause.saves_p5 = quantile(work.saves, 5);
    cause.saves_p95 = quantile(work.saves, 95);
    if (cause.saves > 0) causes.push_back(std::move(cause));
  }
  return causes;
}

}  // namespace bubblescope::inline sim
