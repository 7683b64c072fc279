// Compares the time of each step's backwards with that of its forwards.
#include "traces/measured/evaluation_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/ir/units.h"

namespace bubblescope::traces {

namespace {

/// Backwards that take less than this part of the forwards' time compute nothing.
constexpr double kEmpty = 0.01;
/// Those of training take more than this part, and usually twice the time.
constexpr double kComputing = 0.25;

/// Returns the time of all backwards as a part of the forwards' time; 0 without any forward.
double measure_backwards(const StepOps& step) {
  Nanos forwards = 0;
  Nanos backwards = 0;
  for (const ObservedOp& observed : step.computes)
    (observed.op.kind == OpKind::kForward ? forwards : backwards) += observed.end - observed.start;
  return forwards <= 0 ? 0 : static_cast<double>(backwards) / static_cast<double>(forwards);
}

}  // namespace

std::size_t remove_evaluations(std::map<StepKey, StepOps>& steps) {
  const auto trains = [](const auto& step) { return measure_backwards(step.second) > kComputing; };
  if (std::none_of(steps.begin(), steps.end(), trains)) return 0;
  return std::erase_if(steps,
                       [](const auto& step) { return measure_backwards(step.second) < kEmpty; });
}

std::string describe_evaluations(std::size_t count) {
  return fmt::format(
      "{} step(s) left out: their backwards compute nothing, as those of an evaluation", count);
}

}  // namespace bubblescope::traces
