// The kinds of causes of long steps, as reports name them.
#pragma once

#include <cstdint>

namespace bubblescope::inline sim {

enum class CauseKind : std::uint8_t {
  kWorker,
  kStage,
  kSequenceLengths,
  kCommunication,
  kLaunch,
  kPause,
  kDrift,
  kSlowSteps,
  kLateReplica,
  kVariation,
};

}  // namespace bubblescope::inline sim
