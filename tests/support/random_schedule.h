// Random legal schedules for property tests: small, but with every feature of the IR.
#pragma once

#include <cstdint>

#include "sim/ir/schedule.h"

namespace bubblescope::tests {

/// The optional features of a random schedule, besides whole sequences and F and B or I and W.
struct RandomTraits {
  bool slices = false;
  bool recompute = false;
  bool messages = false;  ///< post the messages that lowering would place
  bool idle = false;      ///< insert idle slots into `posted`; not together with messages
  bool graph = false;     ///< one pipeline, whose stages read up to three earlier ones each
};

/// The same seed gives the same schedule. Up to 4 ranks, 8 stages with any placement, 6
/// micro-batches; one or two pipelines; some overlapped pairs.
Schedule random_schedule(std::uint32_t seed, const RandomTraits& traits = {});

/// The schedule with one or two ops exchanged, replaced, removed, added or changed. Few such
/// schedules are legal. The same seed damages a schedule in the same way.
Schedule damage(Schedule schedule, std::uint32_t seed);

}  // namespace bubblescope::tests
