// The service that a forward-only step gives to those who wait for its micro-batches.
#pragma once

#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// How a forward-only step serves its micro-batches, each of which is a request.
struct ServingReport {
  std::vector<Nanos> first_token;  ///< [microbatch]: from its arrival to the end of its forward
  Nanos first_token_p50 = 0;       ///< half of the micro-batches take at most this long
  Nanos first_token_p95 = 0;
  Nanos first_token_max = 0;
  double first_token_mean = 0;         ///< in nanoseconds
  double microbatches_per_second = 0;  ///< from the first arrival to the end of the step
};

}  // namespace bubblescope::inline sim
