// Work on GPUs that only lasts: a cost model in real time, on real streams.
#pragma once

#include <vector>

#include "exec/gpu/host/gpu_lanes.h"
#include "exec/runtime/step_clock.h"
#include "sim/ir/program.h"

namespace bubblescope {

/// Instruction id takes durations[id]. kSleep: one thread of the device sleeps; kSpin: all of the
/// rank's multiprocessors are kept busy. Messages only take time. Nothing but the durations is
/// copied.
GpuWork play_on_gpu(const GpuMachine& machine, const Program& program, std::vector<Nanos> durations,
                    Pass pass);

}  // namespace bubblescope
