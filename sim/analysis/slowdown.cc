// Replays every replica with some ops fixed; a step takes as long as its slowest replica.
#include "sim/analysis/slowdown.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "sim/analysis/idle.h"
#include "sim/analysis/replay.h"
#include "sim/engine/simulate.h"

namespace bubblescope::inline sim {

namespace {

constexpr double kFixedWorkers = 0.03;

double ratio(double part, double whole) { return whole == 0 ? 1 : part / whole; }

/// The fixed duration of every kind of op in one step.
std::map<OpKind, Nanos> fixed_durations(const ReplicatedStep& replicas) {
  std::map<OpKind, std::vector<Nanos>> durations;
  for (const ObservedStep& replica : replicas)
    for (InstructionId id = 0; id < replica.program.size(); ++id)
      durations[replica.program.instructions[id].op.kind].push_back(replica.timeline.end[id] -
                                                                    replica.timeline.start[id]);
  std::map<OpKind, Nanos> fixed;
  for (auto& [kind, values] : durations) {
    const auto middle = values.begin() + std::ssize(values) / 2;
    std::nth_element(values.begin(), middle, values.end());
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    fixed[kind] =
        is_compute(kind) ? std::llround(sum / static_cast<double>(values.size())) : *middle;
  }
  return fixed;
}

/// The makespan of one replica if the ops for which `is_fixed` holds are fixed.
template <class IsFixed>
double compute_makespan(const ObservedStep& replica, const std::map<OpKind, Nanos>& fixed,
                        IsFixed is_fixed) {
  std::vector<Nanos> durations = collect_durations(replica.timeline);
  for (InstructionId id = 0; id < durations.size(); ++id) {
    const Instruction& instruction = replica.program.instructions[id];
    if (is_fixed(instruction)) durations[id] = fixed.at(instruction.op.kind);
  }
  const StepBounds bounds = find_step_bounds(simulate(replica.program, durations));
  return static_cast<double>(bounds.end - bounds.start);
}

/// The times of one step in each counterfactual, or their sums over the steps.
struct CounterfactualTimes {
  double replayed = 0;
  double fixed = 0;
  std::array<double, kComputeKinds> all_but_kind{};
  std::vector<double> all_but_worker;  ///< [replica * ranks + rank]
  std::vector<double> all_but_stage;   ///< [rank]
  double last_stage_fixed = 0;

  void add(const CounterfactualTimes& more) {
    replayed += more.replayed;
    fixed += more.fixed;
    last_stage_fixed += more.last_stage_fixed;
    for (std::size_t kind = 0; kind < kComputeKinds; ++kind)
      all_but_kind[kind] += more.all_but_kind[kind];
    const auto add_all = [](std::vector<double>& sums, const std::vector<double>& values) {
      sums.resize(std::max(sums.size(), values.size()), 0);
      for (std::size_t at = 0; at < values.size(); ++at) sums[at] += values[at];
    };
    add_all(all_but_worker, more.all_but_worker);
    add_all(all_but_stage, more.all_but_stage);
  }
};

/// The counterfactuals of one step.
class Counterfactuals {
 public:
  explicit Counterfactuals(const ReplicatedStep& replicas)
      : replicas_(replicas), fixed_(fixed_durations(replicas)) {}

  /// The time of the slowest replica.
  template <class IsFixed>
  double slowest(IsFixed is_fixed) const {
    double longest = 0;
    for (const ObservedStep& replica : replicas_)
      longest = std::max(longest, compute_makespan(replica, fixed_, is_fixed));
    return longest;
  }

  CounterfactualTimes evaluate() const {
    const std::int32_t ranks = replicas_.front().program.ranks;
    CounterfactualTimes results;
    results.replayed = slowest([](const Instruction&) { return false; });
    results.fixed = slowest([](const Instruction&) { return true; });
    results.last_stage_fixed =
        slowest([=](const Instruction& one) { return one.rank == ranks - 1; });
    for (std::size_t kind = 0; kind < kComputeKinds; ++kind)
      if (fixed_.contains(static_cast<OpKind>(kind)))
        results.all_but_kind[kind] = slowest(
            [=](const Instruction& one) { return one.op.kind != static_cast<OpKind>(kind); });
    for (std::int32_t rank = 0; rank < ranks; ++rank)
      results.all_but_stage.push_back(
          slowest([=](const Instruction& one) { return one.rank != rank; }));
    results.all_but_worker = evaluate_workers(results.fixed);
    return results;
  }

 private:
  /// With all workers but one fixed, only the replica of that worker has to be replayed.
  std::vector<double> evaluate_workers(double all_fixed) const {
    std::vector<double> times;
    for (const ObservedStep& replica : replicas_)
      for (std::int32_t rank = 0; rank < replica.program.ranks; ++rank)
        times.push_back(std::max(
            all_fixed, compute_makespan(replica, fixed_,
                                        [=](const Instruction& one) { return one.rank != rank; })));
    return times;
  }

  const ReplicatedStep& replicas_;
  std::map<OpKind, Nanos> fixed_;
};

/// The slowest 3 % of the workers, but at least one; the slowest comes first.
std::vector<std::size_t> slowest_workers(const std::vector<double>& all_but_worker) {
  std::vector<std::size_t> order(all_but_worker.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return all_but_worker[left] > all_but_worker[right];
  });
  const auto count =
      static_cast<std::size_t>(std::ceil(kFixedWorkers * static_cast<double>(order.size())));
  order.resize(std::max<std::size_t>(1, count));
  return order;
}

/// The time of a step if only these workers are fixed.
double time_with_fixed(const ReplicatedStep& replicas, const std::vector<std::size_t>& workers) {
  const std::map<OpKind, Nanos> fixed = fixed_durations(replicas);
  const auto ranks = static_cast<std::size_t>(replicas.front().program.ranks);
  double longest = 0;
  for (std::size_t replica = 0; replica < replicas.size(); ++replica)
    longest =
        std::max(longest, compute_makespan(replicas[replica], fixed, [&](const Instruction& one) {
                   const std::size_t worker = replica * ranks + static_cast<std::size_t>(one.rank);
                   return std::find(workers.begin(), workers.end(), worker) != workers.end();
                 }));
  return longest;
}

}  // namespace

SlowdownReport find_slowdown(std::span<const ReplicatedStep> steps) {
  CounterfactualTimes sums;
  SlowdownReport report;
  for (const ReplicatedStep& step : steps) {
    const CounterfactualTimes times = Counterfactuals(step).evaluate();
    sums.add(times);
    std::vector<double>& workers = report.by_step.emplace_back();
    for (const double time : times.all_but_worker) workers.push_back(ratio(time, times.fixed));
  }
  const auto count = static_cast<double>(steps.size());
  report.slowdown = ratio(sums.replayed, sums.fixed);
  report.replayed = std::llround(sums.replayed / count);
  report.fixed = std::llround(sums.fixed / count);
  for (std::size_t kind = 0; kind < kComputeKinds; ++kind)
    if (sums.all_but_kind[kind] > 0)
      report.by_kind[kind] = ratio(sums.all_but_kind[kind], sums.fixed);
  const auto ranks = static_cast<std::size_t>(steps.front().front().program.ranks);
  for (std::size_t worker = 0; worker < sums.all_but_worker.size(); ++worker)
    report.by_worker.push_back({static_cast<std::int32_t>(worker / ranks),
                                static_cast<std::int32_t>(worker % ranks),
                                ratio(sums.all_but_worker[worker], sums.fixed)});
  for (const double time : sums.all_but_stage) report.by_stage.push_back(ratio(time, sums.fixed));
  const double excess = sums.replayed - sums.fixed;
  if (excess <= 0) return report;
  const std::vector<std::size_t> slowest = slowest_workers(sums.all_but_worker);
  double without_slowest = 0;
  for (const ReplicatedStep& step : steps) without_slowest += time_with_fixed(step, slowest);
  report.worker_share = (sums.replayed - without_slowest) / excess;
  report.last_stage_share = (sums.replayed - sums.last_stage_fixed) / excess;
  return report;
}

}  // namespace bubblescope::inline sim
