// Estimates what each cause costs by replaying all replicas with that cause removed.
#include "sim/analysis/causes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "sim/analysis/replay.h"
#include "sim/engine/simulate.h"
#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

constexpr double kSlow = 1.02;
constexpr double kGrowTogether = 0.9;
constexpr double kMaxDropped = 0.02;  ///< as a fraction of the step
constexpr std::size_t kMaxWorkers = 3;
constexpr std::size_t kFewestSamples = 8;

using StageKind = std::pair<std::int32_t, OpKind>;
/// The durations of one replica's instructions in one step, with a cause removed.
using Durations = std::vector<Nanos>;

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

/// Sets messages that end exactly when an op of their receiver ends to take no time: they waited
/// for the receiver, and a faster receiver would have taken them sooner.
void drop_waiting(const ObservedStep& step, Durations& durations) {
  std::set<std::pair<std::int32_t, Nanos>> ends;
  step.for_each_compute([&](InstructionId id, const Instruction& one) {
    ends.emplace(one.rank, step.timeline.end[id]);
  });
  for (InstructionId id = 0; id < step.program.size(); ++id) {
    const Instruction& one = step.program.instructions[id];
    if (is_message(one) && ends.contains({one.peer, step.timeline.end[id]})) durations[id] = 0;
  }
}

enum class Waiting : std::uint8_t { kKept, kDropped };

/// The mean step time when every replica is replayed with the durations that `mend(step)` returns.
/// A step takes as long as its slowest replica.
double mean_time(std::span<const ReplicatedStep> steps, Waiting waiting,
                 const std::function<std::vector<Durations>(const ReplicatedStep&)>& mend) {
  double sum = 0;
  for (const ReplicatedStep& step : steps) {
    std::vector<Durations> durations = mend(step);
    Nanos longest = 0;
    for (std::size_t replica = 0; replica < step.size(); ++replica) {
      if (waiting == Waiting::kDropped) drop_waiting(step[replica], durations[replica]);
      longest =
          std::max(longest, compute_makespan(simulate(step[replica].program, durations[replica])));
    }
    sum += static_cast<double>(longest);
  }
  return sum / static_cast<double>(steps.size());
}

std::vector<Durations> as_measured(const ReplicatedStep& step) {
  std::vector<Durations> durations;
  for (const ObservedStep& replica : step) durations.push_back(collect_durations(replica.timeline));
  return durations;
}

/// Gives every compute op the mean duration of the ops with the same key, over all replicas of the
/// step.
template <class KeyOf>
std::vector<Durations> with_means(const ReplicatedStep& step, KeyOf key_of) {
  std::map<decltype(key_of(std::size_t{}, Op{})), Mean> means;
  for (std::size_t replica = 0; replica < step.size(); ++replica)
    step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
      means[key_of(replica, one.op)].add(static_cast<double>(step[replica].duration_of(id)));
    });
  std::vector<Durations> durations = as_measured(step);
  for (std::size_t replica = 0; replica < step.size(); ++replica)
    step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
      durations[replica][id] = std::llround(means.at(key_of(replica, one.op)).value());
    });
  return durations;
}

std::vector<Durations> with_equal_stages(const ReplicatedStep& step) {
  return with_means(step, [](std::size_t replica, const Op& op) {
    return std::tuple(replica, op.kind, op.microbatch, op.slice);
  });
}

std::vector<Durations> with_equal_lengths(const ReplicatedStep& step) {
  return with_means(
      step, [](std::size_t, const Op& op) { return std::tuple(op.kind, op.stage, op.slice); });
}

/// The stage with the most work, and its work relative to the mean over the stages.
Cause largest_stage(std::span<const ReplicatedStep> steps) {
  std::map<std::int32_t, double> work;
  std::map<std::int32_t, std::int32_t> rank_of;
  for (const ReplicatedStep& step : steps)
    for (const ObservedStep& replica : step)
      replica.for_each_compute([&](InstructionId id, const Instruction& one) {
        work[one.op.stage] += static_cast<double>(replica.duration_of(id));
        rank_of[one.op.stage] = one.rank;
      });
  const auto most = std::max_element(
      work.begin(), work.end(),
      [](const auto& left, const auto& right) { return left.second < right.second; });
  double all = 0;
  for (const auto& [_, time] : work) all += time;
  Cause cause{CauseKind::kStage};
  cause.stage = most->first;
  cause.rank = rank_of.at(most->first);
  if (all > 0) cause.factor = most->second * static_cast<double>(work.size()) / all;
  return cause;
}

/// The correlation between the forward and backward times of a micro-batch, from -1 to 1; empty if
/// there are too few micro-batches or their times do not vary.
std::optional<double> correlation(std::span<const ReplicatedStep> steps) {
  std::vector<std::pair<double, double>> samples;
  for (const ReplicatedStep& step : steps)
    for (const ObservedStep& replica : step) {
      std::map<std::int32_t, std::pair<double, double>> of_microbatch;
      replica.for_each_compute([&](InstructionId id, const Instruction& one) {
        auto& [forward, backward] = of_microbatch[one.op.microbatch];
        (one.op.kind == OpKind::kForward ? forward : backward) +=
            static_cast<double>(replica.duration_of(id));
      });
      for (const auto& [_, times] : of_microbatch) samples.push_back(times);
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

/// The op durations of every worker, and how they compare with those of the same stage in other
/// replicas.
class Workers {
 public:
  explicit Workers(std::span<const ReplicatedStep> steps)
      : steps_(steps), replicas_(steps.front().size()) {
    for (const ReplicatedStep& step : steps)
      for (std::size_t replica = 0; replica < replicas_; ++replica)
        step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
          times_[{one.op.stage, one.op.kind}].resize(replicas_);
          times_[{one.op.stage, one.op.kind}][replica].push_back(step[replica].duration_of(id));
        });
    for (const auto& [place, of_replicas] : times_)
      for (std::size_t replica = 0; replica < replicas_; ++replica)
        factors_[{replica, place}] = compare(of_replicas, replica);
  }

  /// The workers that are more than 2 % slower, the slowest first.
  std::vector<Cause> slow() const {
    std::vector<Cause> causes;
    for (std::size_t replica = 0; replica < replicas_; ++replica)
      for (std::int32_t rank = 0; rank < steps_.front().front().program.ranks; ++rank) {
        Cause cause{CauseKind::kWorker, static_cast<std::int32_t>(replica), rank};
        cause.factor = slowness(cause);
        if (cause.factor > kSlow) causes.push_back(cause);
      }
    std::stable_sort(causes.begin(), causes.end(), [](const Cause& left, const Cause& right) {
      return left.factor > right.factor;
    });
    if (causes.size() > kMaxWorkers) causes.resize(kMaxWorkers);
    for (Cause& cause : causes) cause.steps = count_slow_steps(cause);
    return causes;
  }

  std::vector<Durations> mend(const ReplicatedStep& step, const Cause& worker) const {
    std::vector<Durations> durations = as_measured(step);
    const auto replica = static_cast<std::size_t>(worker.replica);
    step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
      if (one.rank == worker.rank)
        durations[replica][id] =
            std::llround(static_cast<double>(durations[replica][id]) / factor(replica, one.op));
    });
    return durations;
  }

 private:
  /// The median of one replica relative to the median of all others; 1 if there is nothing to
  /// compare.
  static double compare(const std::vector<std::vector<Nanos>>& of_replicas, std::size_t replica) {
    std::vector<Nanos> others;
    for (std::size_t other = 0; other < of_replicas.size(); ++other)
      if (other != replica)
        others.insert(others.end(), of_replicas[other].begin(), of_replicas[other].end());
    if (others.empty() || of_replicas[replica].empty()) return 1;
    const Nanos usual = quantile(std::move(others), 50);
    const Nanos own = quantile(of_replicas[replica], 50);
    return usual <= 0 || own <= 0 ? 1 : static_cast<double>(own) / static_cast<double>(usual);
  }

  double factor(std::size_t replica, const Op& op) const {
    return factors_.at({replica, StageKind{op.stage, op.kind}});
  }

  /// The worker's total time relative to its time at the speed of the other replicas.
  double slowness(const Cause& worker) const {
    double own = 0;
    double usual = 0;
    const auto replica = static_cast<std::size_t>(worker.replica);
    for (const ReplicatedStep& step : steps_)
      step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
        if (one.rank != worker.rank) return;
        const auto time = static_cast<double>(step[replica].duration_of(id));
        own += time;
        usual += time / factor(replica, one.op);
      });
    return usual == 0 ? 1 : own / usual;
  }

  /// The number of steps in which the worker is slower than the mean of the same rank in the other
  /// replicas.
  std::int64_t count_slow_steps(const Cause& worker) const {
    std::int64_t count = 0;
    for (const ReplicatedStep& step : steps_) {
      std::vector<double> busy(replicas_, 0);
      for (std::size_t replica = 0; replica < replicas_; ++replica)
        step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
          if (one.rank == worker.rank)
            busy[replica] += static_cast<double>(step[replica].duration_of(id));
        });
      const double own = busy[static_cast<std::size_t>(worker.replica)];
      const double others = std::accumulate(busy.begin(), busy.end(), -own);
      if (own * static_cast<double>(replicas_ - 1) > kSlow * others) ++count;
    }
    return count;
  }

  std::span<const ReplicatedStep> steps_;
  std::size_t replicas_;
  std::map<StageKind, std::vector<std::vector<Nanos>>> times_;  ///< [replica]
  std::map<std::pair<std::size_t, StageKind>, double> factors_;
};

}  // namespace

CauseReport find_causes(std::span<const ReplicatedStep> steps) {
  CauseReport report;
  // If messages leave some time after their op ended, only the waiting time keeps the replay as
  // long as the measured step. Without it, the replay says nothing about causes.
  const double as_it_was = mean_time(steps, Waiting::kKept, as_measured);
  const double replayed = mean_time(steps, Waiting::kDropped, as_measured);
  const Waiting waiting = Waiting::kDropped;
  report.is_known = std::abs(replayed - as_it_was) <= kMaxDropped * as_it_was;
  report.replayed = std::llround(replayed);
  if (!report.is_known) return report;
  const auto add = [&](Cause cause, double mended) {
    cause.saves = std::llround(replayed - mended);
    if (cause.saves > 0) report.causes.push_back(cause);
  };
  add(largest_stage(steps), mean_time(steps, waiting, with_equal_stages));
  if (const std::optional<double> together = correlation(steps);
      together && *together >= kGrowTogether) {
    Cause cause{CauseKind::kSequenceLengths};
    cause.factor = *together;
    add(cause, mean_time(steps, waiting, with_equal_lengths));
  }
  if (steps.front().size() > 1) {
    const Workers workers(steps);
    for (const Cause& worker : workers.slow())
      add(worker, mean_time(steps, waiting, [&](const ReplicatedStep& step) {
            return workers.mend(step, worker);
          }));
  }
  std::stable_sort(report.causes.begin(), report.causes.end(),
                   [](const Cause& left, const Cause& right) { return left.saves > right.saves; });
  return report;
}

}  // namespace bubblescope::inline sim
