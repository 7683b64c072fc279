// Creates ValidSchedules.
#include "sim/ir/valid_schedule.h"

#include "sim/ir/counted.h"
#include "sim/ir/order_cycle.h"
#include "sim/ir/validate.h"

namespace bubblescope::inline sim {

Problems find_problems(const Schedule& schedule) {
  Problems problems = validate_ops(schedule);
  return problems.empty() ? validate_posted(schedule) : problems;
}

namespace {

/// Whether a long schedule is valid because it is so without most of its cycles. Says nothing about
/// a schedule that has problems, or that does not repeat itself.
bool is_valid_by_cycles(const Schedule& schedule) {
  constexpr std::int64_t kMinOps = 16'384;
  constexpr std::int64_t kMinCycles = 8;
  if (schedule.op_count() < kMinOps) return false;
  const std::optional<OrderCycle> cycle = find_order_cycle(schedule);
  if (!cycle || cycle->count < kMinCycles) return false;
  const Schedule shortened = remove_cycles(schedule, *cycle, cycle->count - 1);
  return find_problems(shortened).empty() && keeps_validity(shortened, *cycle);
}

}  // namespace

std::variant<ValidSchedule, InvalidSchedule> validate_schedule(Schedule schedule) {
  if (is_valid_by_cycles(schedule)) return ValidSchedule(std::move(schedule));
  Problems problems = find_problems(schedule);
  if (problems.empty()) return ValidSchedule(std::move(schedule));
  return InvalidSchedule{std::move(schedule), std::move(problems)};
}

ValidSchedule require_valid(Schedule schedule) {
  std::variant<ValidSchedule, InvalidSchedule> validated = validate_schedule(std::move(schedule));
  if (auto* valid = std::get_if<ValidSchedule>(&validated)) return std::move(*valid);
  const auto& invalid = std::get<InvalidSchedule>(validated);
  throw Error(Fault::kProblem, invalid.schedule.name + " is not legal: " +
                                   counted(std::ssize(invalid.problems), "problem") +
                                   ", the first: " + to_string(invalid.problems[0]));
}

}  // namespace bubblescope::inline sim
