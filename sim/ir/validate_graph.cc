// Checks the stage graph.
#include <cstdint>
#include <string>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/validate.h"

namespace bubblescope::inline sim {

namespace {

void check_inputs(const Schedule& schedule, std::int32_t stage, Problems& problems) {
  std::int32_t before = -1;
  for (const std::int32_t input : schedule.graph.inputs(stage)) {
    if (input <= before || input >= stage)
      problems.push_back(
          {{},
           {},
           "stage " + std::to_string(stage) + " has the input " + std::to_string(input),
           "its inputs are earlier stages, each once and in ascending order"});
    before = input;
  }
}

}  // namespace

Problems validate_graph(const Schedule& schedule) {
  Problems problems;
  if (schedule.graph.is_chain()) return problems;
  const auto report = [&](std::string what, std::string remedy = {}) {
    problems.push_back({{}, {}, std::move(what), std::move(remedy)});
  };
  const auto stages = static_cast<std::int32_t>(schedule.graph.inputs().size());
  if (stages != schedule.stages())
    report("the stage graph has the inputs of " + counted(stages, "stage") +
               ", and the placement " + std::to_string(schedule.stages()),
           "name those of each");
  if (schedule.pipelines > 1 || !schedule.replicas_of_stage.empty())
    report("a stage graph needs one pipeline, and one rank per stage");
  if (posts_messages(schedule))
    report("posted messages need stages in a chain", "leave them to the lowering");
  for (std::int32_t stage = 0; stage < stages; ++stage) check_inputs(schedule, stage, problems);
  return problems;
}

}  // namespace bubblescope::inline sim
