// Execute: run a Program on a backend. The same Program in as for simulate, the same Timeline out.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/runtime/backend.h"
#include "sim/ir/error.h"
#include "sim/ir/timeline.h"

namespace bubblescope {

struct ExecuteOptions {
  std::int32_t warmup = 1;  ///< steps that are run and not measured
  std::int32_t steps = 1;   ///< measured steps
  /// Called after every step, warm-up steps too, while no lane runs; may be empty.
  std::function<void()> after_step;
};

/// Why an execution ended early.
struct Breakdown {
  Fault fault = Fault::kMachine;
  std::string message;  ///< what happened, where every rank stood and what it waited for
};

struct Execution {
  /// The measured steps. After a breakdown, the last one is the step that broke down: what never
  /// started stands at its end with no length.
  std::vector<Timeline> steps;
  std::optional<Breakdown> breakdown;
};

/// Runs warm-up and measured steps of the backend's Program. `source` is the backend's name.
/// Returns, with a breakdown, also when a rank fails.
Execution execute(const Program& program, Backend& backend, const std::string& source,
                  const ExecuteOptions& options);

/// The measured step whose makespan is the median. Needs one step at least.
const Timeline& median_step(const std::vector<Timeline>& steps);

}  // namespace bubblescope
