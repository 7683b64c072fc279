// The memory curve: each rank's memory over a step, its peak, and the op that reaches the peak.
#pragma once

#include <vector>

#include "sim/analysis/report.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/memory_model.h"

namespace bubblescope::inline sim {

/// An amount of activations, in every unit in which they are counted.
struct MemoryAmount {
  std::int64_t chunk_millionths = 0;
  std::int64_t unit_millionths = 0;  ///< times MemoryModel::unit_parts
  Bytes bytes = 0;

  MemoryAmount& operator+=(const MemoryAmount& other) {
    chunk_millionths += other.chunk_millionths;
    unit_millionths += other.unit_millionths;
    bytes += other.bytes;
    return *this;
  }
};

/// One point of a rank's memory curve.
struct MemoryPoint {
  Nanos time = 0;
  std::int32_t rank = 0;
  InstructionId by = 0;  ///< the instruction that allocated or released memory
  MemoryAmount held;
};

/// Every change of every rank's memory, each rank's in time order. An op allocates when it starts
/// and releases when it ends. At the same time, copies that release come first, then compute ops in
/// their order, then copies that allocate. Activations evicted to another rank's memory count there
/// from the start of the EVICT to the end of the LOAD. Bytes include held buffers (held_buffers.h).
std::vector<MemoryPoint> compute_memory_curve(const ValidSchedule& schedule, const Program& program,
                                              const Timeline& timeline, const MemoryModel& memory);

/// Returns the peak of every rank.
std::vector<Peak> find_peaks(const ValidSchedule& schedule, const Program& program,
                             const Timeline& timeline, const MemoryModel& memory);

}  // namespace bubblescope::inline sim
