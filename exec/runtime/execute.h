// Runs a Program on a backend. It takes the same Program as simulate and returns the same Timeline.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/runtime/backend.h"
#include "sim/ir/error.h"
#include "sim/ir/timeline.h"

namespace bubblescope::exec {

struct ExecuteOptions {
  std::int32_t warmup = 1;  ///< steps that run before the measured ones
  std::int32_t steps = 1;   ///< measured steps
  /// Called after every step, including warm-up, while no lane runs; may be empty.
  std::function<void()> after_step;
};

/// The reason why an execution ended early.
struct Breakdown {
  Fault fault = Fault::kMachine;
  std::string message;  ///< what happened, and where each rank was blocked and on what
};

struct Execution {
  /// The measured steps. After a breakdown, the last one is the aborted step: instructions that
  /// never started have length zero at its end.
  std::vector<Timeline> steps;
  std::optional<Breakdown> breakdown;
};

/// Runs warm-up and measured steps of the backend's Program. `source` is the backend's name. A
/// rank's failure is returned as a breakdown.
Execution execute(const Program& program, Backend& backend, const std::string& source,
                  const ExecuteOptions& options);

/// The measured step with the median makespan. Needs at least one step.
const Timeline& median_step(const std::vector<Timeline>& steps);

}  // namespace bubblescope::exec
