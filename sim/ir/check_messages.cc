// One dataflow Program and one set of posted lists, tried in every mode.
#include "sim/ir/check_messages.h"

#include <utility>

#include "sim/ir/lower_messages.h"

namespace bubblescope {

namespace {

std::variant<Program, Deadlock> lower_dataflow(const ValidSchedule& schedule,
                                               LowerOptions options) {
  options.mode = P2pMode::kDataflow;
  return lower(schedule, options);
}

bool blocks(const Program& dataflow, const std::vector<PostedSteps>& steps, Slots slots) {
  return std::holds_alternative<Deadlock>(lower_to_queues(dataflow, steps, slots));
}

}  // namespace

std::optional<std::int32_t> eager_slots_needed(const ValidSchedule& schedule,
                                               const LowerOptions& options) {
  const auto dataflow = lower_dataflow(schedule, options);
  const auto* program = std::get_if<Program>(&dataflow);
  if (!program) return std::nullopt;
  const std::vector<PostedSteps> steps =
      find_steps(schedule, *program, posted_lists(schedule, options.posting));
  if (!blocks(*program, steps, 0)) return 0;
  if (blocks(*program, steps, std::nullopt)) return std::nullopt;
  // More slots never block more: every step up only moves the awaited receive further to the front.
  std::int32_t too_few = 0;
  std::int32_t enough = 1;
  while (blocks(*program, steps, enough)) too_few = std::exchange(enough, 2 * enough);
  while (enough - too_few > 1) {
    const std::int32_t middle = too_few + (enough - too_few) / 2;
    (blocks(*program, steps, middle) ? too_few : enough) = middle;
  }
  return enough;
}

std::vector<ModeVerdict> check_modes(const ValidSchedule& schedule, const LowerOptions& options) {
  std::vector<ModeVerdict> verdicts;
  const auto dataflow = lower_dataflow(schedule, options);
  const auto* program = std::get_if<Program>(&dataflow);
  std::vector<PostedSteps> steps;
  if (program) steps = find_steps(schedule, *program, posted_lists(schedule, options.posting));
  LowerOptions tried = options;
  for (const Named<P2pMode>& mode : kP2pModes) {
    tried.mode = mode.choice;
    const auto lowered = program ? lower_messages(*program, steps, tried) : dataflow;
    ModeVerdict verdict{mode.choice, std::nullopt};
    if (const auto* deadlock = std::get_if<Deadlock>(&lowered)) verdict.deadlock = *deadlock;
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

}  // namespace bubblescope
