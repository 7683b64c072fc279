// Replays whole steps with some ops and activities fixed.
#include "sim/analysis/slowdown.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/analysis/mean.h"
#include "sim/engine/simulate.h"
#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

constexpr double kFixedWorkers = 0.03;

double ratio(double owner, double whole) { return whole == 0 ? 1 : owner / whole; }

/// The Programs of all steps, with the fixed duration of every kind of op and activity.
struct JobSteps {
  std::vector<JobProgram> programs;
  std::vector<std::optional<Nanos>>
      fixed;  ///< [InstructionOwner::kind]; empty where the kind is missing
  std::array<std::optional<Nanos>, kOpKinds> fixed_on_side;  ///< the same of ops of side stages
  std::vector<bool> communicates;                            ///< [InstructionOwner::kind]
  std::vector<std::string> names;                            ///< of activities
  bool has_activities = false;

  /// A send keeps its queue for no longer than its message usually takes.
  Nanos fixed_of(const InstructionOwner& owner, Nanos measured) const {
    const std::optional<Nanos>& time =
        owner.is_on_side_stage ? fixed_on_side[owner.kind] : fixed[owner.kind];
    if (owner.is_end) return std::min(measured, time.value_or(measured));
    return *time;
  }
};

/// The kinds whose fixed duration is a median, because it includes waiting now and then.
std::vector<bool> find_communicating(std::span<const std::vector<OuterActivity>> activities,
                                     const std::vector<std::string>& names) {
  std::vector<bool> communicates(kOpKinds + names.size(), false);
  for (int kind = 0; kind < kOpKinds; ++kind)
    communicates[static_cast<std::size_t>(kind)] = !is_compute(static_cast<OpKind>(kind));
  for (const std::vector<OuterActivity>& of_step : activities)
    for (const OuterActivity& activity : of_step) {
      const auto name = std::lower_bound(names.begin(), names.end(), activity.name) - names.begin();
      if (activity.communicates) communicates[static_cast<std::size_t>(kOpKinds + name)] = true;
    }
  return communicates;
}

/// The duration of fixed parts of a kind; empty if there are none.
std::optional<Nanos> find_fixed(const std::vector<Nanos>& of_kind, bool communicates) {
  if (of_kind.empty()) return {};
  if (communicates) return quantile(of_kind, 50);
  const double sum = std::accumulate(of_kind.begin(), of_kind.end(), 0.0);
  return std::llround(sum / static_cast<double>(of_kind.size()));
}

JobSteps make_job_steps(std::span<const ReplicatedStep> steps,
                        std::span<const std::vector<OuterActivity>> activities) {
  JobSteps job;
  job.names = collect_names(activities);
  job.programs = make_job_programs(steps, activities, job.names);
  std::vector<std::vector<Nanos>> durations(kOpKinds + job.names.size());
  std::vector<std::vector<Nanos>> on_side(kOpKinds);
  for (const JobProgram& one : job.programs)
    for (std::size_t id = 0; id < one.owners.size(); ++id) {
      const InstructionOwner& owner = one.owners[id];
      if (!owner.is_end)
        (owner.is_on_side_stage ? on_side : durations)[owner.kind].push_back(one.durations[id]);
      job.has_activities = job.has_activities || owner.kind >= kOpKinds;
    }
  job.communicates = find_communicating(activities, job.names);
  for (std::size_t kind = 0; kind < durations.size(); ++kind)
    job.fixed.push_back(find_fixed(durations[kind], job.communicates[kind]));
  for (std::size_t kind = 0; kind < on_side.size(); ++kind)
    job.fixed_on_side[kind] = find_fixed(on_side[kind], job.communicates[kind]);
  return job;
}

/// The times of all steps if duration_of(owner, measured duration) is how long each instruction
/// takes.
template <class DurationOf>
std::vector<double> replay_changed(const JobSteps& job, DurationOf duration_of) {
  std::vector<double> times;
  for (const JobProgram& one : job.programs) {
    std::vector<Nanos> durations = one.durations;
    for (std::size_t id = 0; id < durations.size(); ++id)
      durations[id] = duration_of(one.owners[id], durations[id]);
    times.push_back(static_cast<double>(compute_makespan(simulate(one.program, durations))));
  }
  return times;
}

/// Replays the steps with those parts fixed for which `is_fixed` holds.
template <class IsFixed>
std::vector<double> replay_fixed(const JobSteps& job, IsFixed is_fixed) {
  return replay_changed(job, [&](const InstructionOwner& owner, Nanos measured) {
    return is_fixed(owner) ? job.fixed_of(owner, measured) : measured;
  });
}

/// The slowest 3 % of the workers, but at least one; the slowest comes first.
std::vector<std::size_t> find_slowest(const std::vector<WorkerSlowdown>& workers) {
  std::vector<std::size_t> order(workers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return workers[left].slowdown > workers[right].slowdown;
  });
  const auto count =
      static_cast<std::size_t>(std::ceil(kFixedWorkers * static_cast<double>(order.size())));
  order.resize(std::max<std::size_t>(1, count));
  return order;
}

/// Compares steps in which all but some parts are fixed with the one in which everything is.
class Comparison {
 public:
  explicit Comparison(const JobSteps& job)
      : job_(job), fixed_(replay_fixed(job, [](const InstructionOwner&) { return true; })) {}

  const std::vector<double>& fixed() const { return fixed_; }

  /// The times of all steps where only the parts for which `is_kept` holds keep their durations.
  template <class IsKept>
  std::vector<double> keep(IsKept is_kept) const {
    return replay_fixed(job_, [=](const InstructionOwner& owner) { return !is_kept(owner); });
  }

  double slowdown(const std::vector<double>& times) const {
    return ratio(mean_of(times), mean_of(fixed_));
  }

 private:
  const JobSteps& job_;
  std::vector<double> fixed_;
};

ActivitySlowdown describe_activity(const JobSteps& job, std::size_t kind,
                                   const std::vector<double>& replayed) {
  ActivitySlowdown activity{job.names[kind - kOpKinds], job.communicates[kind]};
  const std::vector<double> without =
      replay_changed(job, [=](const InstructionOwner& owner, Nanos measured) {
        return owner.kind == kind ? Nanos{0} : measured;
      });
  for (std::size_t at = 0; at < without.size(); ++at)
    activity.saves.push_back(std::llround(replayed[at] - without[at]));
  return activity;
}

void compare_kinds(const JobSteps& job, const Comparison& comparison,
                   const std::vector<double>& replayed, SlowdownReport& report) {
  for (std::size_t kind = 0; kind < job.fixed.size(); ++kind) {
    if (!job.fixed[kind]) continue;
    const double slowdown = comparison.slowdown(
        comparison.keep([=](const InstructionOwner& owner) { return owner.kind == kind; }));
    if (kind < kOpKinds) {
      report.by_kind[kind] = slowdown;
      continue;
    }
    report.by_activity.push_back(describe_activity(job, kind, replayed));
    report.by_activity.back().slowdown = slowdown;
  }
}

void compare_workers(const ReplicatedStep& step, const Comparison& comparison,
                     SlowdownReport& report) {
  std::vector<std::vector<double>> of_replicas;
  std::vector<std::vector<double>> of_ranks;
  for (std::int32_t replica = 0; replica < std::ssize(step); ++replica)
    of_replicas.push_back(
        comparison.keep([=](const InstructionOwner& owner) { return owner.replica == replica; }));
  for (std::int32_t rank = 0; rank < step.front().program.ranks; ++rank)
    of_ranks.push_back(
        comparison.keep([=](const InstructionOwner& owner) { return owner.rank == rank; }));
  for (const std::vector<double>& times : of_replicas)
    report.by_replica.push_back(comparison.slowdown(times));
  for (const std::vector<double>& times : of_ranks)
    report.by_stage.push_back(comparison.slowdown(times));
  report.by_step.resize(comparison.fixed().size());
  for (std::size_t replica = 0; replica < of_replicas.size(); ++replica)
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
      report.by_worker.push_back({static_cast<std::int32_t>(replica),
                                  static_cast<std::int32_t>(rank),
                                  std::min(report.by_replica[replica], report.by_stage[rank])});
      for (std::size_t at = 0; at < report.by_step.size(); ++at)
        report.by_step[at].push_back(
            ratio(std::min(of_replicas[replica][at], of_ranks[rank][at]), comparison.fixed()[at]));
    }
}

}  // namespace

SlowdownReport find_slowdown(std::span<const ReplicatedStep> steps,
                             std::span<const std::vector<OuterActivity>> activities) {
  const JobSteps job = make_job_steps(steps, activities);
  const Comparison comparison(job);
  const std::vector<double> as_measured =
      replay_fixed(job, [](const InstructionOwner&) { return false; });
  const double replayed = mean_of(as_measured);
  const double fixed = mean_of(comparison.fixed());
  SlowdownReport report;
  report.slowdown = ratio(replayed, fixed);
  report.replayed = std::llround(replayed);
  report.fixed = std::llround(fixed);
  report.has_whole_steps = job.has_activities;
  compare_kinds(job, comparison, as_measured, report);
  compare_workers(steps.front(), comparison, report);
  const std::int32_t ranks = steps.front().front().program.ranks;
  if (replayed <= fixed) return report;
  std::vector<bool> is_slow(report.by_worker.size(), false);
  const std::vector<std::size_t> slowest = find_slowest(report.by_worker);
  report.slowest_workers = slowest.size();
  for (const std::size_t worker : slowest) is_slow[worker] = true;
  const double without_slow = mean_of(replay_fixed(job, [&](const InstructionOwner& owner) {
    return is_slow[static_cast<std::size_t>(owner.replica * ranks + owner.rank)];
  }));
  const double without_last = mean_of(
      replay_fixed(job, [=](const InstructionOwner& owner) { return owner.rank == ranks - 1; }));
  report.worker_share = (replayed - without_slow) / (replayed - fixed);
  report.last_stage_share = (replayed - without_last) / (replayed - fixed);
  return report;
}

}  // namespace bubblescope::inline sim
