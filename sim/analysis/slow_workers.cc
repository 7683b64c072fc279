// Compares workers by the medians of their ops.
#include "sim/analysis/slow_workers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>

#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

constexpr double kSlow = 1.02;
constexpr double kMinChange = 0.01;  ///< from step to step, as a standard deviation

/// The logarithms of relative times, less their mean.
std::vector<double> spread_of(const std::vector<double>& relative_times) {
  std::vector<double> logs;
  double mean = 0;
  for (const double relative_time : relative_times) {
    logs.push_back(std::log(std::max(relative_time, kMinRelativeTime)));
    mean += logs.back() / static_cast<double>(relative_times.size());
  }
  for (double& log : logs) log -= mean;
  return logs;
}

/// The usual standard deviation of relative times, whatever a few of them do.
double find_usual_change(const std::vector<std::vector<double>>& relative_times) {
  std::vector<double> sizes;
  for (const std::vector<double>& one : relative_times)
    for (const double log : spread_of(one)) sizes.push_back(std::abs(log));
  return robust_deviation(std::move(sizes));
}

/// Whether relative times differ from step to step by more than the usual change explains, but for
/// one case in a thousand: Wilson and Hilferty's quantile of the chi-squared distribution.
bool is_changing(const std::vector<double>& relative_times, double usual) {
  if (relative_times.size() < 2) return false;
  constexpr double kQuantileOfNormal = 3.09;
  const double freedom = static_cast<double>(relative_times.size()) - 1;
  const double part = 2 / (9 * freedom);
  const double limit = freedom * std::pow(1 - part + kQuantileOfNormal * std::sqrt(part), 3);
  double squares = 0;
  for (const double log : spread_of(relative_times)) squares += log * log;
  return squares > std::max(limit * usual * usual,
                            kMinChange * kMinChange * static_cast<double>(relative_times.size()));
}

}  // namespace

SlowWorkers join_workers(const std::vector<SlowWorker>& workers, std::int32_t ranks) {
  SlowWorkers all{.factor = 0, .steps = workers.front().steps};
  std::map<std::int32_t, std::int32_t> slow_ranks;  // of each replica
  for (const SlowWorker& one : workers) {
    all.workers.push_back(one.worker);
    all.factor += one.factor / static_cast<double>(workers.size());
    all.steps = std::min(all.steps, one.steps);
    ++slow_ranks[one.worker.replica];
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
      compared_[{replica, place}] = compare(of_replicas, replica);
  if (replicas_ > 1 && steps.front().front().program.ranks > 1) compare_steps();
}

std::vector<SlowWorker> Workers::slow(double chance) const {
  std::vector<SlowWorker> found;
  for (std::size_t replica = 0; replica < replicas_; ++replica)
    for (std::int32_t rank = 0; rank < steps_.front().front().program.ranks; ++rank) {
      const Worker worker{static_cast<std::int32_t>(replica), rank};
      const double slower = slowness(worker);
      if (slower > std::max(kSlow, 1 + chance)) found.push_back({worker, slower});
    }
  std::stable_sort(found.begin(), found.end(), [](const SlowWorker& left, const SlowWorker& right) {
    return left.factor > right.factor;
  });
  for (SlowWorker& slow : found) slow.steps = count_slow_steps(slow.worker);
  return found;
}

Counterfactual Workers::with_usual_speed(const std::vector<Worker>& slow) const {
  const std::set<Worker> workers(slow.begin(), slow.end());
  return [this, workers](std::size_t at, const ReplicatedStep& step,
                         std::vector<Durations> durations) {
    for (std::size_t replica = 0; replica < step.size(); ++replica)
      step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
        const Worker worker{static_cast<std::int32_t>(replica), one.rank};
        if (!workers.contains(worker)) return;
        const double slower = (factor(replica, one.op) - 1) * share_of_step(worker, at);
        durations[replica][id] =
            std::llround(static_cast<double>(durations[replica][id]) / (1 + slower));
      });
    return durations;
  };
}

double Workers::share_of_step(const Worker& worker, std::size_t step) const {
  const auto found = shares_.find(worker);
  return found == shares_.end() ? 1 : found->second[step];
}

/// Compares the median of one replica with the median of all others.
Workers::Comparison Workers::compare(const std::vector<std::vector<Nanos>>& of_replicas,
                                     std::size_t replica) {
  std::vector<Nanos> others;
  for (std::size_t other = 0; other < of_replicas.size(); ++other)
    if (other != replica)
      others.insert(others.end(), of_replicas[other].begin(), of_replicas[other].end());
  if (others.empty() || of_replicas[replica].empty()) return {};
  const Nanos usual = quantile(std::move(others), 50);
  const Nanos own = quantile(of_replicas[replica], 50);
  if (usual <= 0 || own <= 0) return {};
  return {static_cast<double>(usual), static_cast<double>(own) / static_cast<double>(usual)};
}

double Workers::factor(std::size_t replica, const Op& op) const {
  return compared_.at({replica, StageKind{op.stage, op.kind}}).factor;
}

RelativeTimes Workers::find_relative_times() const {
  const auto ranks = static_cast<std::size_t>(steps_.front().front().program.ranks);
  RelativeTimes relative_times(replicas_ * ranks);
  for (const ReplicatedStep& step : steps_)
    for (std::size_t replica = 0; replica < replicas_; ++replica) {
      std::vector<double> own(ranks, 0);
      std::vector<double> usual(ranks, 0);
      step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
        const auto rank = static_cast<std::size_t>(one.rank);
        own[rank] += static_cast<double>(step[replica].duration_of(id));
        usual[rank] += compared_.at({replica, StageKind{one.op.stage, one.op.kind}}).usual;
      });
      for (std::size_t rank = 0; rank < ranks; ++rank)
        relative_times[replica * ranks + rank].push_back(usual[rank] > 0 ? own[rank] / usual[rank]
                                                                         : 1);
    }
  return relative_times;
}

std::vector<bool> Workers::find_changing_replicas(const RelativeTimes& relative_times) const {
  const std::size_t ranks = relative_times.size() / replicas_;
  RelativeTimes common(replicas_);  // [replica][step]
  for (std::size_t replica = 0; replica < replicas_; ++replica)
    for (std::size_t step = 0; step < steps_.size(); ++step) {
      std::vector<double> of_ranks;
      for (std::size_t rank = 0; rank < ranks; ++rank)
        of_ranks.push_back(relative_times[replica * ranks + rank][step]);
      common[replica].push_back(quantile(std::move(of_ranks), 50));
    }
  std::vector<bool> changing;
  for (std::size_t replica = 0; replica < replicas_; ++replica) {
    RelativeTimes others = common;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(replica));
    changing.push_back(is_changing(common[replica], find_usual_change(others)));
  }
  return changing;
}

void Workers::compare_steps() {
  const RelativeTimes relative_times = find_relative_times();
  const std::size_t ranks = relative_times.size() / replicas_;
  const RelativeTimes related = relate_to_ranks(relative_times, ranks);
  const std::vector<bool> changing = find_changing_replicas(relative_times);
  const double usual = find_usual_change(related);
  for (std::size_t at = 0; at < relative_times.size(); ++at) {
    const std::size_t replica = at / ranks;
    if (!changing[replica] && !is_changing(related[at], usual)) continue;
    const Worker worker{static_cast<std::int32_t>(replica), static_cast<std::int32_t>(at % ranks)};
    const double slower = slowness(worker) - 1;
    if (slower <= kSlow - 1) continue;
    for (const double relative_time : changing[replica] ? relative_times[at] : related[at])
      shares_[worker].push_back((relative_time - 1) / slower);
  }
}

/// Returns the worker's total time relative to its time at the speed of the other replicas.
double Workers::slowness(const Worker& worker) const {
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
std::int64_t Workers::count_slow_steps(const Worker& worker) const {
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
