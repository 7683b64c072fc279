// Many configurations, evaluated on all cores.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/analysis/plan.h"

namespace bubblescope {

/// The numbers that a flag stands for: "4", "1,2,4", "2..16" (every number), "8..128:8" (steps of
/// 8), "8..128x2" (doubling); ascending, each once. Throws Error for anything else.
std::vector<std::int32_t> parse_numbers(const std::string& text);

/// Called now and then, from one thread at a time, with how many configurations are done.
using Progress = std::function<void(std::size_t done, std::size_t all)>;

/// What becomes of each configuration, in their order, whatever the number of threads. `evaluate`
/// is called from several threads at once; what it throws is thrown here.
std::vector<Outcome> sweep(const std::vector<Configuration>& configurations,
                           const std::function<Outcome(const Configuration&)>& evaluate,
                           std::int32_t threads, const Progress& progress);

/// A bar on stderr where that is a terminal; elsewhere nothing.
Progress progress_bar();

}  // namespace bubblescope
