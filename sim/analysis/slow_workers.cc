// Compares workers by the medians of their ops.
#include "sim/analysis/slow_workers.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>

#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

constexpr double kSlow = 1.02;

}  // namespace

Cause join_workers(const std::vector<Cause>& workers, std::int32_t ranks) {
  Cause all = workers.front();
  all.factor = 0;
  std::map<std::int32_t, std::int32_t> slow_ranks;  // of each replica
  for (const Cause& worker : workers) {
    all.changed.push_back({worker.replica, worker.rank});
    all.factor += worker.factor / static_cast<double>(workers.size());
    all.steps = std::min(all.steps, worker.steps);
    ++slow_ranks[worker.replica];
  }
  all.whole_replicas = ranks > 1 && std::all_of(slow_ranks.begin(), slow_ranks.end(),
                                                [&](const auto& of) { return of.second == ranks; });
  return all;
}

Workers::Workers(std::span<const ReplicatedStep> steps)
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

std::vector<Cause> Workers::slow(double chance) const {
  std::vector<Cause> causes;
  for (std::size_t replica = 0; replica < replicas_; ++replica)
    for (std::int32_t rank = 0; rank < steps_.front().front().program.ranks; ++rank) {
      Cause cause{CauseKind::kWorker, static_cast<std::int32_t>(replica), rank};
      cause.factor = slowness(cause);
      if (cause.factor > std::max(kSlow, 1 + chance)) causes.push_back(cause);
    }
  std::stable_sort(causes.begin(), causes.end(), [](const Cause& left, const Cause& right) {
    return left.factor > right.factor;
  });
  for (Cause& cause : causes) {
    cause.steps = count_slow_steps(cause);
    cause.all_steps = std::ssize(steps_);
  }
  return causes;
}

void Workers::mend(const ReplicatedStep& step, const Cause& cause,
                   std::vector<Durations>& durations) const {
  std::set<Worker> workers(cause.changed.begin(), cause.changed.end());
  if (workers.empty()) workers.insert({cause.replica, cause.rank});
  for (std::size_t replica = 0; replica < step.size(); ++replica)
    step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
      if (workers.contains({static_cast<std::int32_t>(replica), one.rank}))
        durations[replica][id] =
            std::llround(static_cast<double>(durations[replica][id]) / factor(replica, one.op));
    });
}

/// The median of one replica relative to the median of all others; 1 if there is nothing to
/// compare.
double Workers::compare(const std::vector<std::vector<Nanos>>& of_replicas, std::size_t replica) {
  std::vector<Nanos> others;
  for (std::size_t other = 0; other < of_replicas.size(); ++other)
    if (other != replica)
      others.insert(others.end(), of_replicas[other].begin(), of_replicas[other].end());
  if (others.empty() || of_replicas[replica].empty()) return 1;
  const Nanos usual = quantile(std::move(others), 50);
  const Nanos own = quantile(of_replicas[replica], 50);
  return usual <= 0 || own <= 0 ? 1 : static_cast<double>(own) / static_cast<double>(usual);
}

double Workers::factor(std::size_t replica, const Op& op) const {
  return factors_.at({replica, StageKind{op.stage, op.kind}});
}

/// The worker's total time relative to its time at the speed of the other replicas.
double Workers::slowness(const Cause& worker) const {
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
std::int64_t Workers::count_slow_steps(const Cause& worker) const {
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

}  // namespace bubblescope::inline sim
