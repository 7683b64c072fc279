// What the kernels do, by the means of exec/training: float32 only.
#pragma once

#include "exec/gpu/calls.h"

namespace bubblescope {

void run_on_host(const BubblescopeLaunch& launch);
void run_on_host(const BubblescopeProduct& product);

}  // namespace bubblescope
