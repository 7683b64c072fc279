// Combines the work of the same step.
#include "traces/measured/whole_steps.h"

#include <algorithm>
#include <optional>
#include <string>

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

  /// The host may leave its mark before the device has ended.
  Nanos whole() const {
    if (!longest_mark) return all.end - all.start;
    return std::max(*longest_mark, pipeline.end - pipeline.start);
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
};

}  // namespace

std::vector<WholeStep> find_whole_steps(const std::vector<ObservedWork>& works,
                                        const StepExtents& pipelines) {
  std::map<std::pair<std::int32_t, std::int64_t>, ReplicaStep> replicas;
  for (const auto& [key, extent] : pipelines) replicas[key] = {extent, extent, {}, {}};
  for (const ObservedWork& work : works) {
    const auto found = replicas.find({work.replica, work.step});
    if (found != replicas.end()) found->second.add(work);
  }
  std::map<std::int64_t, WholeStep> steps;
  for (const auto& [key, replica] : replicas) {
    const auto [found, is_first] = steps.try_emplace(key.second);
    WholeStep& step = found->second;
    step.step = key.second;
    step.whole = std::max(step.whole, replica.whole());
    const Nanos pipeline = replica.pipeline.end - replica.pipeline.start;
    if (!is_first && pipeline <= step.pipeline) continue;
    // The replica that computes the longest waits the least in collectives.
    step.pipeline = pipeline;
    step.outside = replica.parts();
  }
  std::vector<WholeStep> found;
  for (auto& [_, step] : steps) found.push_back(std::move(step));
  return found;
}

}  // namespace bubblescope::traces
