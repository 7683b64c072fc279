// Replays all replicas of every step.
#include "sim/analysis/coupled_replay.h"

#include <algorithm>
#include <utility>

#include "sim/analysis/replay.h"
#include "sim/engine/simulate.h"

namespace bubblescope::inline sim {

namespace {

/// The durations of a job's instructions. Those of one replica stand in their order.
Durations join_durations(const JobProgram& job, const std::vector<Durations>& of_replicas,
                         Waiting waiting) {
  Durations durations = job.durations;
  std::vector<std::size_t> next(of_replicas.size(), 0);
  for (std::size_t id = 0; id < durations.size(); ++id) {
    const InstructionOwner& owner = job.owners[id];
    if (owner.kind >= kOpKinds) continue;
    const auto replica = static_cast<std::size_t>(owner.replica);
    const Nanos duration = of_replicas[replica][next[replica]++];
    const bool drops = owner.waits_for_receiver && waiting == Waiting::kDropped;
    durations[id] = drops ? std::min(duration, durations[id]) : duration;
  }
  return durations;
}

}  // namespace

std::vector<Durations> as_measured(const ReplicatedStep& step) {
  std::vector<Durations> durations;
  for (const ObservedStep& replica : step) durations.push_back(collect_durations(replica.timeline));
  return durations;
}

std::vector<Durations> apply_counterfactuals(std::span<const ReplicatedStep> steps, std::size_t at,
                                             std::span<const Counterfactual> counterfactuals) {
  std::vector<Durations> durations = as_measured(steps[at]);
  for (const Counterfactual& apply : counterfactuals)
    durations = apply(at, steps[at], std::move(durations));
  return durations;
}

CoupledSteps::CoupledSteps(std::span<const ReplicatedStep> steps,
                           std::span<const std::vector<OuterActivity>> activities)
    : steps_(steps), programs_(make_job_programs(steps, activities, collect_names(activities))) {}

std::vector<double> CoupledSteps::replay(Waiting waiting,
                                         std::span<const Counterfactual> counterfactuals) const {
  std::vector<double> times;
  for (std::size_t at = 0; at < steps_.size(); ++at) {
    const JobProgram& job = programs_[at];
    const Durations durations =
        join_durations(job, apply_counterfactuals(steps_, at, counterfactuals), waiting);
    times.push_back(static_cast<double>(compute_makespan(simulate(job.program, durations))));
  }
  return times;
}

}  // namespace bubblescope::inline sim
