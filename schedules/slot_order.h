// Schedules drawn on squared paper: every op takes one slot, and a rank runs its ops in the order
// of their slots.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/two_streams.h"

namespace bubblescope {

/// A pipeline in which a micro-batch takes a slot per stage, down and up again without a stop.
/// Micro-batches enter in groups, one every other slot: a group has left when the next one comes.
struct SlotPipeline {
  std::int32_t stages = 1;
  std::int32_t group_size = 1;
};

/// The order of one rank. In a pipeline of S stages and groups of g, stage s runs
///   the forward of micro-batch kg+x in slot 2Sk + 2x + s,
///   its backward in slot 2Sk + 2x + 2S-1 - s
/// Two ops of a rank must not fall into one slot: that is the placement's affair.
class SlotOrder {
 public:
  explicit SlotOrder(SlotPipeline pipeline) : pipeline_(pipeline) {}

  /// The first `count` micro-batches of a stream pass through the stage at `position`.
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

}  // namespace bubblescope
