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

#include "sim/analysis/chance.h"
#include "sim/analysis/coupled_replay.h"
#include "sim/analysis/equal_work.h"
#include "sim/analysis/fit_noise.h"
#include "sim/analysis/largest_stage.h"
#include "sim/analysis/length_correlation.h"
#include "sim/analysis/long_ops.h"
#include "sim/analysis/pauses.h"
#include "sim/analysis/slow_steps.h"
#include "sim/analysis/slow_workers.h"
#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

constexpr double kGrowTogether = 0.9;
constexpr double kHidden = 1.1;  ///< of what slow workers save singly: where all save more
constexpr std::size_t kMaxSingleWorkers = 3;  ///< that are causes of their own
constexpr double kUnequal = 1.02;   ///< work of a stage, below which its ops differ by chance
constexpr double kMinSaved = 0.01;  ///< as a fraction of the step
constexpr double kMaxLongFraction = 0.25;  ///< of all ops: where more are long, all are unequal
constexpr double kMaxDropped = 0.02;       ///< as a fraction of the step
constexpr double kOfOneLink = 0.5;         ///< of what free messages save, for a link to be named

/// Collects causes by replaying with each of them removed.
class CauseFinder {
 public:
  explicit CauseFinder(const CoupledSteps& coupled)
      : coupled_(coupled), steps_(coupled.steps()), replayed_(replay({})) {}

  double replayed() const { return mean_of(replayed_); }

  /// Single ops that take far longer than others. The other causes are what is left without them,
  /// so that their time is not counted twice. Where they are not rare, they count only if a single
  /// worker has them: it is slow for some of its micro-batches.
  void find_long_ops() {
    const FittedNoise& noise = noise_;
    LongOps long_ops = describe_long_ops(samples_, noise.is_straggler, noise.excess);
    if (long_ops.count == 0) {
      long_ops = describe_long_ops(samples_, find_long_samples(noise.excess, kMaxLongFraction),
                                   noise.excess);
      if (!long_ops.worker || has_drifted(*long_ops.worker)) return;
    }
    Cause pauses{CauseKind::kPause};
    pauses.within_ops = true;
    pauses.count = long_ops.count;
    pauses.steps = long_ops.steps;
    pauses.factor = long_ops.factor;
    if (long_ops.worker) pauses.changed = {*long_ops.worker};
    const Mend usual =
        shorten([&](std::size_t at) { return long_ops.are[at] ? noise.excess[at] : 1.0; });
    add(pauses, usual);
    take_as_base(usual);
  }

  void find_unequal_work() {
    const Cause stage = largest_stage(steps_, base_);
    if (stage.factor > std::max(kUnequal, 1 + chance_.between_ranks))
      add(stage, with_equal_stages(steps_.front().front()));
    const std::optional<double> together = correlate_lengths(steps_, base_);
    if (!together || *together < kGrowTogether) return;
    Cause cause{CauseKind::kSequenceLengths};
    cause.factor = *together;
    add(cause, with_equal_lengths());
  }

  /// Those that are slow in some steps only: medians over the steps do not show them.
  void find_workers_slow_at_times() {
    std::size_t count = 0;
    for (const SlowSteps& slow : find_slow_steps(steps_, base_)) {
      Cause cause{CauseKind::kWorker, slow.worker.replica, slow.worker.rank};
      if (is_slow_worker(slow.worker) || count == kMaxSingleWorkers ||
          (slow.grows && has_drifted(slow.worker)))
        continue;
      cause.factor = slow.factor;
      cause.steps = slow.steps;
      cause.all_steps = std::ssize(steps_);
      cause.is_at_times = true;
      cause.grows = slow.grows;
      const Mend mend = with_usual_pace(steps_, slow);
      if (!add(cause, mend)) continue;
      take_as_base(mend);
      ++count;
    }
  }

  /// Steps that are slow on all ranks, unless that is a lasting change.
  void find_slow_steps_of_all() {
    if (drift_ && drift_->change > 0 && drift_->workers.empty()) return;
    const CommonSlowSteps slow = find_common_slow_steps(steps_, base_);
    if (slow.steps == 0) return;
    Cause cause{CauseKind::kSlowSteps};
    cause.factor = slow.factor;
    cause.steps = slow.steps;
    cause.all_steps = std::ssize(steps_);
    cause.are_first = slow.are_first;
    add(cause, with_usual_pace(steps_, slow));
  }

  /// Unequal stages and lengths are what is left without those that are clearly slow, however
  /// little one of them saves.
  void find_slow_workers() {
    const auto clear_end =
        std::find_if(slow_workers_.begin(), slow_workers_.end(),
                     [](const Cause& worker) { return worker.factor <= kClearlySlow; });
    const std::vector<Cause> clear(slow_workers_.begin(), clear_end);
    for (std::size_t at = clear.size(); at < slow_workers_.size() && at < kMaxSingleWorkers; ++at)
      add(slow_workers_[at], mend_worker(slow_workers_[at]));
    if (clear.empty()) return;
    const Cause all = join_workers(clear, steps_.front().front().program.ranks);
    add_clearly_slow(clear, all);
    mends_.push_back(mend_worker(all));
    take_as_base(mends_.back());
  }

  /// Ops that differ without a pattern, where nothing else in the pipeline is a cause.
  void find_variation() {
    const double least = kMinSaved * mean_of(replayed_);
    if (std::none_of(causes_.begin(), causes_.end(),
                     [&](const Cause& one) { return static_cast<double>(one.saves) >= least; }))
      add(Cause{CauseKind::kVariation}, with_equal_lengths());
  }

  void find_messages() {
    Cause cause{CauseKind::kCommunication};
    cause.link = find_slow_link(steps_);
    if (cause.link &&
        time_saved(with_usual_link(*cause.link)) < kOfOneLink * time_saved(with_free_messages))
      cause.link.reset();
    add(cause, with_free_messages);
  }

  /// A lasting change of speed.
  void find_drift() {
    if (!drift_ || drift_->change <= 0 || is_of_slow_workers(*drift_)) return;
    Cause change{CauseKind::kDrift};
    change.factor = 1 + drift_->change;
    change.steps = static_cast<std::int64_t>(drift_->first_step);
    change.changed = drift_->workers;
    const auto has_changed = [&](const OpSample& sample) {
      return sample.step >= drift_->first_step &&
             (drift_->workers.empty() || has_drifted(worker_of(sample)));
    };
    const Mend mend =
        shorten([&](std::size_t at) { return has_changed(samples_[at]) ? change.factor : 1; });
    if (add(change, mend) && !change.changed.empty() && change.factor > kClearlySlow)
      take_as_base(mend);
  }

  /// Gaps make the steps longer than their replay, so they have a baseline of their own.
  void find_gaps() {
    const std::vector<double> all = replay({with_gaps()});
    const auto add_gaps = [&](Cause cause, GapKind kind) {
      const std::vector<Nanos> sums = sum_gaps(steps_, kind);
      const auto largest = std::max_element(sums.begin(), sums.end());
      if (*largest == 0) return;
      cause.rank = static_cast<std::int32_t>(largest - sums.begin());
      cause.factor = static_cast<double>(*largest) / (total(all) * replicas());
      compare(cause, all, replay({with_gaps(kind)}));
    };
    add_gaps(Cause{CauseKind::kLaunch}, GapKind::kLaunch);
    Cause pauses{CauseKind::kPause};
    for (std::size_t step = 0; step < steps_.size(); ++step) {
      const std::int64_t count = count_pauses(steps_.subspan(step, 1));
      pauses.count += count;
      pauses.steps += count > 0 ? 1 : 0;
    }
    add_gaps(pauses, GapKind::kPause);
    Cause messages{CauseKind::kCommunication};
    messages.is_unseen = true;
    add_gaps(messages, GapKind::kUnseenMessage);
  }

  /// Returns the time that removing all causes at once saves.
  Nanos find_saved_together() const {
    return std::llround(mean_of(replay({with_gaps()})) - mean_of(replay(mends_)));
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

  Mend mend_worker(const Cause& worker) const {
    return [workers = workers_, worker](const ReplicatedStep& step,
                                        std::vector<Durations>& durations) {
      workers->mend(step, worker, durations);
    };
  }

  /// Whether a worker's own speed has changed for good.
  bool has_drifted(const Worker& worker) const {
    return drift_ && std::find(drift_->workers.begin(), drift_->workers.end(), worker) !=
                         drift_->workers.end();
  }

  /// Whether all workers that a drift is of are slow ones, which are causes of their own.
  bool is_of_slow_workers(const Drift& drift) const {
    return !drift.workers.empty() &&
           std::all_of(drift.workers.begin(), drift.workers.end(),
                       [&](const Worker& worker) { return is_slow_worker(worker); });
  }

  bool is_slow_worker(const Worker& worker) const {
    return std::any_of(slow_workers_.begin(), slow_workers_.end(), [&](const Cause& cause) {
      return Worker{cause.replica, cause.rank} == worker;
    });
  }

  void take_as_base(const Mend& mend) {
    base_.push_back(mend);
    base_times_ = replay(base_);
  }

  std::vector<double> replay_with(const Mend& mend) const {
    std::vector<Mend> mends = base_;
    mends.push_back(mend);
    return replay(mends);
  }

  double time_saved(const Mend& mend) const {
    return mean_of(base_times_) - mean_of(replay_with(mend));
  }

  /// Compares with the base. Returns whether it is a cause.
  bool add(const Cause& cause, const Mend& mend) {
    if (!compare_with_base(cause, mend)) return false;
    mends_.push_back(mend);
    return true;
  }

  bool compare_with_base(const Cause& cause, const Mend& mend) {
    return compare(cause, base_times_, replay_with(mend));
  }

  /// Several workers that are as slow hide each other: they are one cause if mending all saves more
  /// than mending each alone.
  void add_clearly_slow(const std::vector<Cause>& clear, const Cause& all) {
    const std::size_t before = causes_.size();
    Nanos singly = 0;
    for (std::size_t at = 0; at < clear.size() && at < kMaxSingleWorkers; ++at)
      if (compare_with_base(clear[at], mend_worker(clear[at]))) singly += causes_.back().saves;
    if (clear.size() < 2 || !compare_with_base(all, mend_worker(all))) return;
    const Cause joint = causes_.back();
    causes_.pop_back();
    if (static_cast<double>(joint.saves) <= kHidden * static_cast<double>(singly)) return;
    causes_.resize(before);
    causes_.push_back(joint);
  }

  /// Keeps a cause whose removal makes the mean step shorter.
  bool compare(Cause cause, const std::vector<double>& with, const std::vector<double>& without) {
    cause.has_replicas = steps_.front().size() > 1;
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
  FittedNoise noise_ = fit_noise(samples_);
  Chance chance_ = find_chance(samples_, noise_.noise);
  std::optional<Drift> drift_ = sim::find_drift(samples_);
  /// Null with one replica, which has nothing to compare with.
  std::shared_ptr<const Workers> workers_ =
      steps_.front().size() < 2 ? nullptr : std::make_shared<const Workers>(steps_);
  std::vector<Cause> slow_workers_ =
      workers_ ? workers_->slow(chance_.between_replicas) : std::vector<Cause>{};
  std::vector<double> replayed_;
  std::vector<Mend> base_;  ///< of causes that must not count as others as well
  std::vector<double> base_times_ = replayed_;
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
  finder.find_messages();
  finder.find_slow_workers();
  finder.find_workers_slow_at_times();
  finder.find_slow_steps_of_all();
  finder.find_unequal_work();
  finder.find_gaps();
  finder.find_variation();
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
