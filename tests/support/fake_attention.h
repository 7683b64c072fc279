// What attention's kernels do, by the means of exec/training: float32 only.
#pragma once

#include "exec/gpu/orders.h"

namespace bubblescope {

void attend_on_host(const BubblescopeLaunch& launch);

}  // namespace bubblescope
