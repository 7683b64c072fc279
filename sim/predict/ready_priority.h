// Policies: whether ranks keep the order of their schedule or take what is ready.
#pragma once

#include <cstdint>

namespace bubblescope::inline sim {

/// The op that a rank runs next, of those that are ready. Ties go to the op that is earlier in its
/// order.
enum class ReadyPriority : std::uint8_t {
  kOrder,     ///< the one that is first in the rank's order
  kBackward,  ///< backwards before forwards, and weight gradients last
  kPath,      ///< the one with the longest remaining path to the end of the step
};

}  // namespace bubblescope::inline sim
