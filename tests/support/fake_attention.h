// The attention kernels, computed by exec/training in float32.
#pragma once

#include "exec/gpu/requests.h"

namespace bubblescope::tests {

void attend_on_host(const BubblescopeLaunch& launch);

}  // namespace bubblescope::tests
