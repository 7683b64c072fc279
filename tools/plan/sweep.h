// Evaluates many configurations on all cores.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/analysis/plan.h"

namespace bubblescope::tools {

/// Parses the numbers of a flag: "4", "1,2,4", "2..16" (every number), "8..128:8" (steps of 8),
/// "8..128x2" (doubling). The result is ascending and unique. Throws Error for anything else.
std::vector<std::int32_t> parse_numbers(const std::string& text);

/// Called now and then, from one thread at a time, with the number of finished configurations.
using ReportProgress = std::function<void(std::size_t done, std::size_t all)>;

/// Evaluates one configuration.
using Evaluate = std::function<Outcome(const Configuration&)>;

/// Makes an evaluator per thread, which may keep what consecutive configurations share; called from
/// several threads at once.
using MakeEvaluate = std::function<Evaluate()>;

struct SweepOptions {
  std::int32_t threads = 1;
  ReportProgress progress;
  /// Called from one thread at a time with the outcomes of the configurations from `begin` on.
  std::function<void(std::size_t begin, std::span<const Outcome> outcomes)> record = {};
};

/// Thrown where Ctrl-C ended a sweep.
struct InterruptedSweep {
  std::size_t done = 0;  ///< configurations that were evaluated, and recorded
};

/// Returns the outcome of each configuration, in their order, whatever the number of threads.
/// Rethrows what evaluating and `record` throw. Throws InterruptedSweep where an InterruptCatcher
/// has noted Ctrl-C.
std::vector<Outcome> sweep(const std::vector<Configuration>& configurations,
                           const MakeEvaluate& make_evaluate, const SweepOptions& options);

/// Returns a bar on stderr where that is a terminal; elsewhere nothing.
ReportProgress make_progress_bar();

}  // namespace bubblescope::tools
