// Details that viewers show of a step besides the times of its instructions.
#pragma once

#include <vector>

#include "sim/analysis/memory_curve.h"
#include "traces/files/format.h"

namespace bubblescope::traces {

/// Per instruction: for a message, the instruction that waits for it on the receiver; for a pair
/// whose first op waits for the inputs of both, the second op. kNoInstruction for all others.
std::vector<InstructionId> find_consumers(const Program& program);

/// Returns the times at which the memory of ranks changes, in order.
std::vector<MemoryPoint> find_memory_changes(const StepRecord& record);

/// Converts what a rank holds to stage chunks.
double chunks_of(const MemoryAmount& held, const Shape& shape);

/// Converts what a rank holds to bytes, including what never changes in a step; 0 where unknown.
Bytes bytes_of(const MemoryAmount& held, std::int32_t rank, const MemoryModel& memory);

/// Whether bytes are known.
bool has_bytes(const MemoryModel& memory);

}  // namespace bubblescope::traces
