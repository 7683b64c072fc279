// Many configurations, evaluated on all cores.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/analysis/plan.h"

namespace bubblescope {

/// The numbers that a flag stands for: "4", "1,2,4", "2..16" (every number), "8..128:8" (steps of
/// 8), "8..128x2" (doubling); ascending, each once. Throws Error for anything else.
std::vector<std::int32_t> parse_numbers(const std::string& text);

/// Called now and then, from one thread at a time, with how many configurations are done.
using Progress = std::function<void(std::size_t done, std::size_t all)>;

/// What becomes of a configuration.
using Evaluate = std::function<Outcome(const Configuration&)>;

/// Makes one for each thread, which may remember what configurations in a row have in common;
/// called from several threads at once.
using MakeEvaluate = std::function<Evaluate()>;

struct SweepOptions {
  std::int32_t threads = 1;
  Progress progress;
  /// Called from one thread at a time, with what became of the configurations from `begin` on.
  std::function<void(std::size_t begin, std::span<const Outcome> outcomes)> record = {};
};

/// What becomes of each configuration, in their order, whatever the number of threads. What
/// evaluating and `record` throw is thrown here.
std::vector<Outcome> sweep(const std::vector<Configuration>& configurations,
                           const MakeEvaluate& make_evaluate, const SweepOptions& options);

/// Every walk takes and gives back the same few large blocks: from now on the process keeps them,
/// instead of asking the system for fresh pages each time, which costs as much as the walk.
void keep_freed_memory();

/// A bar on stderr where that is a terminal; elsewhere nothing.
Progress progress_bar();

}  // namespace bubblescope
