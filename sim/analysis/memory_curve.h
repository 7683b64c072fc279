// Memory over a step: how high every rank's memory climbs, and at which op.
#pragma once

#include <vector>

#include "sim/analysis/report.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/memory_model.h"

namespace bubblescope {

/// Activations in every unit in which they are counted.
struct Held {
  std::int64_t chunk_millionths = 0;
  std::int64_t unit_millionths = 0;  ///< times MemoryModel::unit_parts
  Bytes bytes = 0;

  Held& operator+=(const Held& other) {
    chunk_millionths += other.chunk_millionths;
    unit_millionths += other.unit_millionths;
    bytes += other.bytes;
    return *this;
  }
};

/// A rank's memory from some time on: one point of its curve.
struct MemoryPoint {
  Nanos time = 0;
  std::int32_t rank = 0;
  InstructionId by = 0;  ///< what took or gave back
  Held held;
};

/// Every change of every rank's memory, each rank's in time order. What an op takes, it takes when
/// it starts; what it gives back, it gives back when it ends. Of changes at one time, copies that
/// give back come first, then the compute ops in their order, then copies that take. What is
/// evicted to another rank's memory counts there from the copy's start to the end of the load.
std::vector<MemoryPoint> memory_curve(const ValidSchedule& schedule, const Program& program,
                                      const Timeline& timeline, const MemoryModel& memory);

/// The peak of every rank.
std::vector<Peak> find_peaks(const ValidSchedule& schedule, const Program& program,
                             const Timeline& timeline, const MemoryModel& memory);

}  // namespace bubblescope
