// Schedules on a time grid: every op takes one slot, and a rank runs its ops in the order of their
// slots.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/two_streams.h"
#include "sim/model/schedule_def.h"

namespace bubblescope::schedules {

/// A pipeline in which a micro-batch takes one slot per stage, down and up again without waiting.
/// Micro-batches enter in groups, one in every other slot; a group has left when the next one
/// enters.
struct SlotPipeline {
  std::int32_t stages = 1;
  std::int32_t group_size = 1;
};

/// Builds the order of one rank. In a pipeline of S stages and groups of g, stage s runs
///   the forward of micro-batch kg+x in slot 2Sk + 2x + s,
///   its backward in slot 2Sk + 2x + 2S-1 - s
/// The placement must ensure that no two ops of a rank are in the same slot.
class SlotOrder {
 public:
  explicit SlotOrder(SlotPipeline pipeline) : pipeline_(pipeline) {}

  /// Adds the first `count` micro-batches of a stream on the stage at `position`.
  void add(Stream stream, std::int32_t position, std::int32_t count);
  RankOrder take() &&;

 private:
  struct SlottedOp {
    std::int64_t slot;
    Op op;
  };

  SlotPipeline pipeline_;
  std::vector<SlottedOp> ops_;
};

/// Whether waves in groups of `pp` micro-batches have at most 1F1B's bubble, without latency: there
/// is one group or a part of one, or there are two whole ones whose ops differ by a factor of 2
/// at most. Later groups wait again for every slot that is as long as the longest op.
bool has_few_groups(const ScheduleRequest& request);

}  // namespace bubblescope::schedules
