// Follows the buffers that a rank holds for a time beside activations:
//
//   outputs   from the end of the op that makes them until their send has ended and the rank has
//             waited for it, which it does after that op at the earliest: a rank whose send budget
//             is K holds up to K + 1
//   gathered  the weights of a stage from the start of its UNSHARD to its RESHARD
//
// Only those that the MemoryModel counts; for outputs the Program must say when ranks wait for
// sends (LowerOptions::send_budget).
#pragma once

#include <vector>

#include "sim/analysis/report.h"
#include "sim/ir/timeline.h"
#include "sim/model/memory_model.h"

namespace bubblescope::inline sim {

enum class HeldBuffer : std::uint8_t { kOutput, kGathered };

/// One buffer more or less.
struct BufferChange {
  Nanos time = 0;
  std::int32_t rank = 0;
  HeldBuffer buffer = HeldBuffer::kOutput;
  bool allocates = true;
  Bytes bytes = 0;       ///< 0 if unknown
  InstructionId by = 0;  ///< the op that makes an output, its WAIT_SEND, the UNSHARD, the RESHARD
};

/// The order of changes at the same time. An op's output is there before the op ends, and gathered
/// weights come and go with the copies.
enum class ChangeOrder : std::uint8_t { kOutput, kCopyReleases, kCompute, kCopyAllocates };
ChangeOrder order_of(const BufferChange& change);

/// All changes in time order; at the same time new outputs come first, then releases.
std::vector<BufferChange> find_buffer_changes(const Program& program, const Timeline& timeline,
                                              const MemoryModel& memory);

/// Sets `outputs` and `gathered` of every rank's peak, where such buffers are counted.
void set_buffer_peaks(std::vector<Peak>& peaks, const std::vector<BufferChange>& changes,
                      const MemoryModel& memory);

}  // namespace bubblescope::inline sim
