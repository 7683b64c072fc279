// The rhythm that most schedules share: some forwards to warm up, then a forward and a backward in
// turn, then the backwards that are left.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope {

/// A micro-batch, or a slice of one, passing through one of a rank's stages.
struct Visit {
  std::int32_t stage = 0;
  std::int32_t microbatch = 0;
  std::int16_t slice = 0;
};

/// What a rank runs, each kind in its own order; as many backwards as forwards.
struct Visits {
  std::vector<Visit> forward;
  std::vector<Visit> backward;
};

/// Micro-batches 0, 1, 2, ... through one stage, forward and backward.
Visits visits_of_stage(std::int32_t stage, std::int32_t microbatches);

/// With full backwards, for `warmup` = 2:
///   F F  F B F B F B  B B
/// Never more than `warmup` + 1 forwards are ahead of their backwards.
RankOrder alternate(const Visits& visits, std::int64_t warmup);

/// With the backward split, W following the I of `lag` visits before; for `warmup` 2 and `lag` 1:
///   F F  F I  F I W  F I W  I W  I W  W
RankOrder alternate_split(const Visits& visits, std::int64_t warmup, std::int64_t lag);

}  // namespace bubblescope
