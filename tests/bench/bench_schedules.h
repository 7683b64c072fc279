// Schedules of benchmarks by their shape.
#pragma once

#include <cstdint>

#include "sim/model/schedule_def.h"

namespace bubblescope::tests {

inline ValidSchedule schedule_of(const char* name, std::int32_t ranks, std::int32_t chunks,
                                 std::int32_t microbatches) {
  ScheduleRequest request;
  request.shape.ranks = ranks;
  request.shape.chunks = chunks;
  request.shape.microbatches = microbatches;
  return build_schedule(find_schedule(name), request);
}

}  // namespace bubblescope::tests
