// Replays all replicas of every step.
#include "sim/analysis/coupled_replay.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "sim/analysis/replay.h"
#include "sim/engine/simulate.h"

namespace bubblescope::inline sim {

namespace {

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

}  // namespace

std::vector<Durations> as_measured(const ReplicatedStep& step) {
  std::vector<Durations> durations;
  for (const ObservedStep& replica : step) durations.push_back(collect_durations(replica.timeline));
  return durations;
}

std::vector<double> replay_steps(std::span<const ReplicatedStep> steps, Waiting waiting,
                                 const Mend& mend) {
  std::vector<double> times;
  for (const ReplicatedStep& step : steps) {
    std::vector<Durations> durations = mend(step);
    Nanos longest = 0;
    for (std::size_t replica = 0; replica < step.size(); ++replica) {
      if (waiting == Waiting::kDropped) drop_waiting(step[replica], durations[replica]);
      longest =
          std::max(longest, compute_makespan(simulate(step[replica].program, durations[replica])));
    }
    times.push_back(static_cast<double>(longest));
  }
  return times;
}

double mean_of(const std::vector<double>& times) {
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

}  // namespace bubblescope::inline sim
