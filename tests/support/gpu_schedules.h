// The registered schedules that GPUs train.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::tests {

struct GpuSchedules {
  std::vector<Schedule> trained;
  std::map<std::string, std::string> left_out;  ///< by name, why GPUs do not train them
};

/// Builds every registered schedule in this shape.
GpuSchedules build_gpu_schedules(const Shape& shape);

}  // namespace bubblescope::tests
