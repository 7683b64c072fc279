// Plays a cost model in real time on GPU streams.
#pragma once

#include <vector>

#include "exec/gpu/host/gpu_lanes.h"
#include "exec/runtime/step_clock.h"
#include "sim/ir/program.h"

namespace bubblescope::exec {

/// Instruction id takes durations[id]. kSleep: one thread sleeps on the device; kSpin: all
/// multiprocessors of the rank are kept busy. Messages only take time. Copies only the durations.
GpuWork play_on_gpu(const GpuMachine& machine, const Program& program, std::vector<Nanos> durations,
                    WaitMode wait_mode);

}  // namespace bubblescope::exec
