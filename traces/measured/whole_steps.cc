// Finds the replica that a step waits for.
#include "traces/measured/whole_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "traces/files/quote.h"
#include "traces/measured/activity_names.h"

namespace bubblescope::traces {

namespace {

/// The replica that waits the least in collectives, because the others wait for it there. Among
/// several of these, the one whose ops take the longest.
const ReplicaStep& find_slowest(const std::map<std::int32_t, ReplicaStep>& replicas) {
  constexpr double kNoticed = 0.01;  // of the step
  Nanos least = std::numeric_limits<Nanos>::max();
  for (const auto& [_, replica] : replicas) least = std::min(least, replica.time_in_collectives());
  const auto waits = [&](const ReplicaStep& replica) {
    return static_cast<double>(replica.time_in_collectives() - least) >
           kNoticed * static_cast<double>(replica.whole());
  };
  const ReplicaStep* slowest = nullptr;
  for (const auto& [_, replica] : replicas)
    if (!waits(replica) && (!slowest || replica.pipeline().length() > slowest->pipeline().length()))
      slowest = &replica;
  return *slowest;
}

/// As long as the slowest replica; marked, until the last rank of all replicas has left it. Where
/// the clocks of replicas differ, these are the marks of one replica in all steps, which last as
/// long in the mean.
Nanos find_length(const std::map<std::int32_t, ReplicaStep>& replicas) {
  Nanos length = 0;
  LastMarks marked;
  for (const auto& [_, replica] : replicas) {
    length = std::max(length, replica.marked() ? replica.pipeline().length() : replica.whole());
    if (replica.marked()) add_mark(marked, *replica.marked());
  }
  return marked ? std::max(length, marked->length()) : length;
}

}  // namespace

std::vector<WholeStep> find_whole_steps(const std::vector<ObservedActivity>& activities,
                                        const PipelineExtents& pipelines) {
  std::vector<WholeStep> found;
  for (const auto& [number, replicas] : group_replicas(pipelines, activities)) {
    const ReplicaStep& slowest = find_slowest(replicas);
    WholeStep step{number, find_length(replicas), slowest.pipeline().length(),
                   slowest.outer_parts()};
    for (const auto& [_, replica] : replicas) {
      const std::optional<std::pair<std::string, Nanos>>& range = replica.other_range();
      if (range && (!step.range || range->second > step.range->second)) step.range = range;
    }
    found.push_back(std::move(step));
  }
  return found;
}

std::vector<std::string> describe_other_ranges(const std::vector<WholeStep>& steps) {
  std::map<std::string, std::string> doubts;  // by name without digits
  for (const WholeStep& step : steps)
    if (step.may_be_longer())
      doubts.emplace(
          without_digits(step.range->first),
          fmt::format("{} holds all ops of a step on its rank and lasts {}, over 1 % longer than "
                      "all that the step is known to hold, so a step may be longer than shown; say "
                      "in `rules` that it is of kind step, or of kind ignore",
                      quote(step.range->first), to_text(step.range->second)));
  std::vector<std::string> sentences;
  for (auto& [_, doubt] : doubts) sentences.push_back(std::move(doubt));
  return sentences;
}

}  // namespace bubblescope::traces
