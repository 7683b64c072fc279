// Combines the work of the same step.
#include "traces/measured/whole_steps.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "traces/measured/collective_names.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

/// The part of a work outside the time of the replica's ops.
Nanos time_outside(const ObservedWork& work, const StepExtent& pipeline) {
  const Nanos before = std::min(work.end, pipeline.start) - work.start;
  const Nanos after = work.end - std::max(work.start, pipeline.end);
  return std::max<Nanos>(0, before) + std::max<Nanos>(0, after);
}

/// One replica in one step.
struct ReplicaStep {
  StepExtent pipeline;
  StepExtent all;
  std::optional<Nanos> longest_mark;
  std::map<std::string, std::map<std::int32_t, Nanos>> outside;  ///< [name][recorder]

  Nanos makespan() const { return pipeline.end - pipeline.start; }

  /// The host may leave its mark before the device has ended.
  Nanos whole() const {
    if (!longest_mark) return all.end - all.start;
    return std::max(*longest_mark, makespan());
  }

  void add(const ObservedWork& work) {
    if (work.is_whole_step) {
      longest_mark = std::max(longest_mark.value_or(0), work.end - work.start);
      return;
    }
    widen(all, work);
    outside[work.name][work.recorder] += time_outside(work, pipeline);
  }

  /// The longest time on any rank, by name, the longest first.
  std::vector<std::pair<std::string, Nanos>> parts() const {
    std::vector<std::pair<std::string, Nanos>> found;
    for (const auto& [name, of_ranks] : outside) {
      Nanos longest = 0;
      for (const auto& [_, time] : of_ranks) longest = std::max(longest, time);
      if (longest > 0) found.emplace_back(name, longest);
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& left, const auto& right) {
      return left.second > right.second;
    });
    return found;
  }

  Nanos in_collectives() const {
    Nanos time = 0;
    for (const auto& [name, longest] : parts())
      if (is_named_like_collective(name)) time += longest;
    return time;
  }
};

/// The others wait in collectives for the slowest replica. Of those that wait as little as another,
/// it is the one whose ops take the longest.
const ReplicaStep& find_slowest(const std::vector<const ReplicaStep*>& replicas) {
  constexpr double kNoticed = 0.01;  // of the step
  Nanos least = std::numeric_limits<Nanos>::max();
  for (const ReplicaStep* replica : replicas) least = std::min(least, replica->in_collectives());
  const auto waits = [&](const ReplicaStep& replica) {
    return static_cast<double>(replica.in_collectives() - least) >
           kNoticed * static_cast<double>(replica.whole());
  };
  const ReplicaStep* slowest = nullptr;
  for (const ReplicaStep* replica : replicas)
    if (!waits(*replica) && (!slowest || replica->makespan() > slowest->makespan()))
      slowest = replica;
  return *slowest;
}

}  // namespace

std::vector<WholeStep> find_whole_steps(const std::vector<ObservedWork>& works,
                                        const StepExtents& pipelines) {
  std::map<std::pair<std::int32_t, std::int64_t>, ReplicaStep> replicas;
  for (const auto& [key, extent] : pipelines) replicas[key] = {extent, extent, {}, {}};
  for (const ObservedWork& work : works) {
    const auto found = replicas.find({work.replica, work.step});
    if (found != replicas.end()) found->second.add(work);
  }
  std::map<std::int64_t, std::vector<const ReplicaStep*>> steps;
  for (const auto& [key, replica] : replicas) steps[key.second].push_back(&replica);
  std::vector<WholeStep> found;
  for (const auto& [number, of_step] : steps) {
    const ReplicaStep& slowest = find_slowest(of_step);
    WholeStep step{number, 0, slowest.makespan(), slowest.parts()};
    for (const ReplicaStep* replica : of_step) step.whole = std::max(step.whole, replica->whole());
    found.push_back(std::move(step));
  }
  return found;
}

}  // namespace bubblescope::traces
