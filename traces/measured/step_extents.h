// From the first op of a rank to its last, step by step.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "traces/files/trace_format.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

/// By the step of its ops, as step_of(op) says; ops without one do not count.
template <class StepOf>
std::map<std::int64_t, TimeSpan> find_step_extents(std::span<const ObservedOp> ops,
                                                   StepOf step_of) {
  std::map<std::int64_t, TimeSpan> extents;
  for (const ObservedOp& observed : ops) {
    const std::optional<std::int64_t> step = step_of(observed);
    if (!step || !is_compute(observed.op.kind)) continue;
    const auto [found, is_new] = extents.emplace(*step, TimeSpan{observed.start, observed.end});
    widen(found->second, observed);
  }
  return extents;
}

}  // namespace bubblescope::traces
