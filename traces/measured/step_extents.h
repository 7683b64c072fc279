// From the first compute op of a step to its last.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "traces/files/trace_format.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

/// The extents of the compute ops with the same key. `key_of` returns the key of an op, an
/// optional; ops without one do not count.
template <class KeyOf>
auto find_extents(std::span<const ObservedOp> ops, KeyOf key_of) {
  using Key = typename std::invoke_result_t<KeyOf, const ObservedOp&>::value_type;
  std::map<Key, TimeSpan> extents;
  for (const ObservedOp& observed : ops) {
    const std::optional<Key> key = key_of(observed);
    if (!key || !is_compute(observed.op.kind)) continue;
    widen(extents.emplace(*key, TimeSpan{observed.start, observed.end}).first->second, observed);
  }
  return extents;
}

/// The extent of every step on every rank, by (recorder, step).
using StepExtents = std::map<std::pair<std::int32_t, std::int64_t>, TimeSpan>;

StepExtents find_step_extents(const ObservedTrace& trace);

/// From the first op of a measured step to its last; nullopt where its start is not known.
std::optional<TimeSpan> find_extent(const MeasuredStep& step);

}  // namespace bubblescope::traces
