// One time for all processes of a step, however their hosts' clocks stand.
#pragma once

#include <functional>
#include <optional>

#include "exec/mpi_port.h"
#include "sim/ir/units.h"

namespace bubblescope {

/// When a step begins, on this process's monotonic clock: the same moment for all, which all call
/// this. Empty where one of them had not answered when `gives_up` became true.
std::optional<Nanos> agree_on_begin(MpiPort& port, const std::function<bool()>& gives_up);

}  // namespace bubblescope
