// Scenarios: variations of a step that are simulated beside it.
#pragma once

#include <cstddef>

#include "sim/model/noise.h"

namespace bubblescope::inline sim {

/// Variations of a step that are simulated in addition to the step itself.
struct Scenarios {
  Noise noise = {};          ///< no scenarios where it is not random
  std::size_t count = 1000;  ///< scenarios of the noise
  bool sensitivity = false;  ///< whether every rank and kind of op gets slower once
};

}  // namespace bubblescope::inline sim
