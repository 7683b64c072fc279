// Random legal schedules for property tests: all that the IR can say, in small.
#pragma once

#include <cstdint>

#include "sim/ir/schedule.h"

namespace bubblescope {

/// What a random schedule may have beyond whole sequences, F and B or I and W.
struct RandomTraits {
  bool slices = false;
  bool recompute = false;
  bool messages = false;  ///< post the messages that lowering places
  bool idle = false;      ///< sprinkle idle slots into `posted`; not together with messages
};

/// The same seed gives the same schedule. Up to 4 ranks, 8 stages anywhere, 6 micro-batches; one
/// pipeline or two; overlapped pairs here and there.
Schedule random_schedule(std::uint32_t seed, const RandomTraits& traits = {});

}  // namespace bubblescope
