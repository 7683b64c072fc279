// A ValidSchedule is a Schedule that has passed the checks of validate.h. Code that indexes tables
// by an op's stage, micro-batch, slice or rank takes this type; only validate_schedule() creates
// it.
//
//   Schedule ─┬─► ValidSchedule    lower, analyze, recompute, offload, draw, export, run
//             └─► InvalidSchedule  print it with its problems, write it as it is
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "sim/ir/error.h"
#include "sim/ir/schedule.h"

namespace bubblescope::inline sim {

/// A schedule as it was given, with everything that is wrong with it.
struct InvalidSchedule {
  Schedule schedule;
  Problems problems;  ///< at least one
};

/// Every op, weight version, message and collective is in range, in its place and unique. The
/// orders may still deadlock; lower() finds that. Converts to a const Schedule; to change one, take
/// the Schedule out and validate it again.
class ValidSchedule {
 public:
  const Schedule& get() const { return schedule_; }
  const Schedule* operator->() const { return &schedule_; }
  const Schedule& operator*() const { return schedule_; }
  operator const Schedule&() const { return schedule_; }

  /// Moves the Schedule out, to be changed.
  Schedule take() && { return std::move(schedule_); }
  /// Needs no new validation: no check reads the name.
  void rename(std::string name) { schedule_.name = std::move(name); }

 private:
  friend std::variant<ValidSchedule, InvalidSchedule> validate_schedule(Schedule schedule);
  explicit ValidSchedule(Schedule schedule) : schedule_(std::move(schedule)) {}

  Schedule schedule_;
};

/// Runs find_problems(). There is no other way to create a ValidSchedule.
std::variant<ValidSchedule, InvalidSchedule> validate_schedule(Schedule schedule);

/// Validates for callers that need a valid schedule. Throws Error (Fault::kProblem) with the first
/// problem.
ValidSchedule require_valid(Schedule schedule);

}  // namespace bubblescope::inline sim
