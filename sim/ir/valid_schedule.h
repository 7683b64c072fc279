// A schedule that the checks of validate.h have found sound. What indexes tables by the stage, the
// micro-batch, the slice or the rank of an op takes this type; only validate_schedule() makes it.
//
//   Schedule ─┬─► ValidSchedule    lower, analyze, recompute, offload, draw, export, run
//             └─► InvalidSchedule  print it with its problems, write it as it is
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "sim/ir/error.h"
#include "sim/ir/schedule.h"

namespace bubblescope {

/// A schedule as it was given, and everything that is wrong with it.
struct InvalidSchedule {
  Schedule schedule;
  Problems problems;  ///< at least one
};

/// Every op, weight version, message and collective of it is in range, in its place and there once.
/// Its orders may still wait for each other: that is what lower() finds. Reads as a Schedule; what
/// changes one takes the Schedule out and validates it again.
class ValidSchedule {
 public:
  const Schedule& get() const { return schedule_; }
  const Schedule* operator->() const { return &schedule_; }
  const Schedule& operator*() const { return schedule_; }
  operator const Schedule&() const { return schedule_; }

  /// The Schedule, to be changed.
  Schedule take() && { return std::move(schedule_); }
  /// No check reads the name.
  void rename(std::string name) { schedule_.name = std::move(name); }

 private:
  friend std::variant<ValidSchedule, InvalidSchedule> validate_schedule(Schedule schedule);
  explicit ValidSchedule(Schedule schedule) : schedule_(std::move(schedule)) {}

  Schedule schedule_;
};

/// The one way to a ValidSchedule: everything that find_problems() looks for is looked for.
std::variant<ValidSchedule, InvalidSchedule> validate_schedule(Schedule schedule);

/// The same for callers that cannot go on without. Throws Error (Fault::kProblem) with the first
/// problem.
ValidSchedule require_valid(Schedule schedule);

}  // namespace bubblescope
