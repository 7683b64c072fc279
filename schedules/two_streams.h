// Orders in which two streams of micro-batches pass a rank, written in phases: V-shaped schedules,
// where a micro-batch returns to the rank, and bidirectional ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/ir/depend.h"
#include "sim/ir/schedule.h"

namespace bubblescope::schedules {

/// Micro-batches first_microbatch, first_microbatch + 1, ... on one of a rank's stages.
struct Stream {
  std::int32_t stage = 0;
  std::int32_t first_microbatch = 0;
};

/// Builds a rank's order, phase by phase, in the notation of the papers. An op names its kind and
/// its stream, and takes that stream's next micro-batch:
///   "F0 I1 W1"  a forward of stream 0, then the input and the weight gradient of stream 1
///   "F0&B1"     a forward of stream 0 overlapped with a full backward of stream 1
///   "W"         the oldest pending weight gradient, of either stream
class TwoStreamOrder {
 public:
  TwoStreamOrder(std::array<Stream, 2> streams, std::int64_t expected_ops);

  void repeat(std::int32_t times, std::string_view phase);
  RankOrder take() &&;

 private:
  /// Makes an op the weight gradient of the first I that no earlier call has found.
  void take_oldest(Op& weight_grad);

  std::array<Stream, 2> streams_;
  std::array<std::array<std::int32_t, 2>, kValueKinds> next_{};  ///< micro-batch, [value][stream]
  std::size_t oldest_ = 0;  ///< where the search for the oldest pending weight gradient continues
  RankOrder ops_;
};

}  // namespace bubblescope::schedules
