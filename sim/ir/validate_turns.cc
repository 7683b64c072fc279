// Checks how the replicas of a data-parallel job take turns.
#include <algorithm>
#include <string>

#include "sim/ir/counted.h"
#include "sim/ir/validate.h"

namespace bubblescope::inline sim {

namespace {

Problems validate_turns_of(const Schedule& schedule, std::int32_t stage) {
  const std::int32_t replicas = schedule.replicas(stage);
  const std::vector<std::int32_t>& turns = schedule.turns_of_stage[stage];
  const bool are_known = std::all_of(turns.begin(), turns.end(), [&](std::int32_t replica) {
    return replica >= 0 && replica < replicas;
  });
  if (are_known && !turns.empty()) return {};
  return {{{},
           {},
           "the turns of stage " + std::to_string(stage) + " need at least one entry, each of 0.." +
               std::to_string(replicas - 1)}};
}

}  // namespace

Problems validate_turns(const Schedule& schedule) {
  if (!schedule.is_data_parallel()) return {};
  const std::size_t given = schedule.turns_of_stage.size();
  if (schedule.replicas_of_stage.empty() || given != schedule.rank_of_stage.size())
    return {{{},
             {},
             "the turns name " + counted(static_cast<std::int64_t>(given), "stage") + " of " +
                 std::to_string(schedule.stages()),
             "give the replicas of every stage, and their turns"}};
  Problems problems;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    for (Problem& problem : validate_turns_of(schedule, stage)) problems.push_back(problem);
  if (!schedule.weights.empty())
    problems.push_back({{},
                        {},
                        "replicas that take turns update together, at the step's end",
                        "leave weights out"});
  return problems;
}

}  // namespace bubblescope::inline sim
