// Creates ValidSchedules.
#include "sim/ir/valid_schedule.h"

#include "sim/ir/validate.h"

namespace bubblescope::inline sim {

Problems find_problems(const Schedule& schedule) {
  Problems problems = validate_ops(schedule);
  return problems.empty() ? validate_posted(schedule) : problems;
}

std::variant<ValidSchedule, InvalidSchedule> validate_schedule(Schedule schedule) {
  Problems problems = find_problems(schedule);
  if (problems.empty()) return ValidSchedule(std::move(schedule));
  return InvalidSchedule{std::move(schedule), std::move(problems)};
}

ValidSchedule require_valid(Schedule schedule) {
  std::variant<ValidSchedule, InvalidSchedule> validated = validate_schedule(std::move(schedule));
  if (auto* valid = std::get_if<ValidSchedule>(&validated)) return std::move(*valid);
  const auto& invalid = std::get<InvalidSchedule>(validated);
  throw Error(Fault::kProblem, invalid.schedule.name +
                                   " is not legal: " + std::to_string(invalid.problems.size()) +
                                   " problem(s), the first: " + invalid.problems[0].message);
}

}  // namespace bubblescope::inline sim
