// Runs a Program on a backend. It takes the same Program as simulate and returns the same Timeline.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
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
  /// Called before and after every measured step, also one that breaks down; may be empty.
  std::function<void()> begin_measured = {};
  std::function<void()> end_measured = {};
};

/// The reason why an execution ended early.
struct Breakdown {
  Fault fault = Fault::kMachine;
  std::string message;  ///< what happened, and where each rank was blocked and on what
  AbortReason reason = AbortReason::kFailure;
};

struct Execution {
  /// The measured steps. After a breakdown, the last one is the aborted step: instructions that
  /// never started have length zero at its end.
  std::vector<Timeline> steps;
  std::optional<Breakdown> breakdown;
};

/// Runs the steps of a backend's Program one at a time, so that other work can run between them.
class StepSeries {
 public:
  /// The references are not copied. `source` is the backend's name. `after_step` is as in
  /// ExecuteOptions.
  StepSeries(const Program& program, Backend& backend, std::string source,
             std::function<void()> after_step)
      : program_(program),
        backend_(backend),
        source_(std::move(source)),
        after_step_(std::move(after_step)) {}

  /// Runs a step, and keeps it if it is measured. Returns false if it broke down; then no other
  /// step may run.
  bool run(bool is_measured);

  const Execution& execution() const { return execution_; }
  Execution take() && { return std::move(execution_); }

 private:
  const Program& program_;
  Backend& backend_;
  std::string source_;
  std::function<void()> after_step_;
  Execution execution_;
};

/// Runs warm-up and measured steps of the backend's Program. `source` is the backend's name. A
/// rank's failure is returned as a breakdown.
Execution execute(const Program& program, Backend& backend, const std::string& source,
                  const ExecuteOptions& options);

/// The measured step with the median makespan, the lower of two. Needs at least one step.
const Timeline& median_step(const std::vector<Timeline>& steps);

}  // namespace bubblescope::exec
