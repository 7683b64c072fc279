// The 1F1B pattern that most schedules share: warm-up forwards, then forwards and backwards in
// turn, then the remaining backwards.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::schedules {

/// A micro-batch, or a slice of one, on one of a rank's stages.
struct Visit {
  std::int32_t stage = 0;
  std::int32_t microbatch = 0;
  std::int16_t slice = 0;
};

/// A rank's forwards and backwards, each in its own order; both have the same length.
struct Visits {
  std::vector<Visit> forward;
  std::vector<Visit> backward;
};

/// Returns the visits of micro-batches 0, 1, 2, ... to one stage, forward and backward.
Visits visits_of_stage(std::int32_t stage, std::int32_t microbatches);

/// The order with full backwards. For `warmup` = 2:
///   F F  F B F B F B  B B
/// At most `warmup` + 1 forwards are ahead of their backwards.
RankOrder alternate(const Visits& visits, std::int64_t warmup);

/// The order with split backwards: each W follows the I that is `lag` visits later than its own.
/// For `warmup` 2 and `lag` 1:
///   F F  F I  F I W  F I W  I W  I W  W
RankOrder alternate_split(const Visits& visits, std::int64_t warmup, std::int64_t lag);

}  // namespace bubblescope::schedules
