// The maximum payload of a gather in a job.
#pragma once

#include <cstdint>

#include "exec/gpu/host/job.h"

namespace bubblescope::exec {

/// The larger of a rank's spans, arrivals and blocked lanes of a step, and, if the job trains, the
/// weights and gradients of the whole model. A process that announces more is disconnected.
std::uint64_t largest_share(const JobRequest& job);

}  // namespace bubblescope::exec
