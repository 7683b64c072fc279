// How many bytes a process can have to share with the others in a job.
#pragma once

#include <cstdint>

#include "exec/gpu/host/job.h"

namespace bubblescope::exec {

/// The largest of: a rank's spans, arrivals and stops in a step; the weights and gradients of the
/// whole model, where it trains. More than this no process of the same job sends.
std::uint64_t largest_share(const JobRequest& job);

}  // namespace bubblescope::exec
