// The activations that a rank of a plain step holds while its order is walked.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "sim/analysis/peak.h"
#include "sim/ir/plain_ops.h"
#include "sim/ir/range.h"
#include "sim/ir/schedule.h"
#include "sim/model/memory_model.h"

namespace bubblescope::inline sim {

/// Chunks, in millionths, and the memory's unit, in millionths of its parts.
struct PlainAmount {
  std::int64_t chunks = 0;
  std::int64_t units = 0;
};

/// The amounts that an op of each kind adds.
inline std::array<PlainAmount, kPlainKinds> find_plain_amounts(const MemoryModel& memory) {
  std::array<PlainAmount, kPlainKinds> amounts;
  const MemoryDelta chunk = chunk_millionths(memory.release);
  for (std::size_t at = 0; at < kPlainKinds; ++at) {
    const auto kind = static_cast<OpKind>(at);
    amounts[at] = {chunk(kind), memory.unit(kind)};
  }
  return amounts;
}

/// Whether no sum of so many ops' amounts can leave its range, whatever the order.
inline bool are_units_in_range(const MemoryModel& memory, std::int64_t ops) {
  double amount = 0;
  for (const std::int64_t delta :
       {memory.unit.forward, memory.unit.input_grad, memory.unit.weight_grad})
    amount += std::abs(static_cast<double>(delta));
  return amount * static_cast<double>(ops) < static_cast<double>(kMaxBytes);
}

/// The memory that a rank holds, and its maxima.
struct PlainHeld {
  PlainAmount now;
  PlainAmount highest;

  /// Returns whether the rank now holds more chunks than ever.
  bool add(const PlainAmount& amount) {
    now.chunks += amount.chunks;
    now.units += amount.units;
    highest.units = std::max(highest.units, now.units);
    if (now.chunks <= highest.chunks) return false;
    highest.chunks = now.chunks;
    return true;
  }

  Peak peak(const Schedule& schedule, const MemoryModel& memory) const {
    Peak peak;
    peak.chunks = static_cast<double>(highest.chunks) / 1e6;
    peak.activations = peak.chunks / schedule.shape.chunks;
    peak.units = static_cast<double>(highest.units) / (1e6 * memory.unit_parts);
    return peak;
  }
};

}  // namespace bubblescope::inline sim
