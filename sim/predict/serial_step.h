// The step of overlapped pairs without their overlap.
#pragma once

#include <optional>

#include "sim/ir/units.h"
#include "sim/ir/valid_schedule.h"
#include "sim/predict/config.h"

namespace bubblescope::inline sim {

/// The end of the step if the two ops of every pair ran one after the other, with the layers and
/// gradients that are chosen for it; nullopt where the parts of none interleave, and for steps
/// whose order or arrivals are only known at run time.
std::optional<Nanos> find_serial_step(const ValidSchedule& schedule, const Config& config);

}  // namespace bubblescope::inline sim
