// What viewers show of a step beside when its instructions ran.
#pragma once

#include <string_view>
#include <vector>

#include "sim/analysis/memory_curve.h"
#include "traces/format.h"

namespace bubblescope {

/// "forward", "input_grad", "p2p": what slices are filtered by.
std::string_view category(OpKind kind);

/// Per instruction: of a message, who waits for it on its receiver; of a pair whose first op waits
/// for both, the second, which uses it. kNoInstruction of all others.
std::vector<InstructionId> find_consumers(const Program& program);

/// The points at which what ranks hold changes, in time order.
std::vector<MemoryPoint> find_memory_changes(const Recording& recording);

/// What a rank holds in stage chunks.
double chunks_of(const Held& held, const Shape& shape);

/// What a rank holds in bytes, with what never changes in a step; 0 where nobody gave bytes.
Bytes bytes_of(const Held& held, std::int32_t rank, const MemoryModel& memory);

/// Whether bytes are known.
bool has_bytes(const MemoryModel& memory);

}  // namespace bubblescope
