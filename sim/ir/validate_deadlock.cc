// Finds orders in which ops wait for each other.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "sim/ir/lower.h"
#include "sim/ir/validate.h"

namespace bubblescope::inline sim {

Problem make_deadlock_problem(const ValidSchedule& schedule, const Deadlock& deadlock) {
  const Wait& wait = deadlock.front();
  const RankOrder& ops = schedule->order[wait.rank];
  const auto at = std::find_if(ops.begin(), ops.end(), [&](Op op) {
    return op.kind == wait.op.kind && op.stage == wait.op.stage &&
           op.microbatch == wait.op.microbatch && op.slice == wait.op.slice;
  });
  Problem problem{wait.rank, {}, "deadlock: " + to_string(deadlock)};
  if (at != ops.end()) problem.position = static_cast<std::int32_t>(at - ops.begin());
  return problem;
}

std::optional<Problem> find_deadlock(const ValidSchedule& schedule) {
  const auto lowered = lower(schedule);
  if (const auto* deadlock = std::get_if<Deadlock>(&lowered))
    return make_deadlock_problem(schedule, *deadlock);
  return std::nullopt;
}

Problems validate(const Schedule& schedule) {
  const std::variant<ValidSchedule, InvalidSchedule> validated = validate_schedule(schedule);
  if (const auto* invalid = std::get_if<InvalidSchedule>(&validated)) return invalid->problems;
  Problems problems = validate_message_order(schedule);
  if (auto deadlock = find_deadlock(std::get<ValidSchedule>(validated)))
    problems.push_back(*std::move(deadlock));
  return problems;
}

}  // namespace bubblescope::inline sim
