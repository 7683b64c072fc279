// The maximum payload that a rank sends in a gather of a job.
#pragma once

#include <cstdint>

#include "exec/gpu/host/job.h"

namespace bubblescope::exec {

/// The largest payload that a rank may send in a gather: its step result or, if the job trains, all
/// weights and gradients, whichever is larger. A process that announces more is disconnected.
std::uint64_t max_gather_bytes(const JobRequest& job);

}  // namespace bubblescope::exec
