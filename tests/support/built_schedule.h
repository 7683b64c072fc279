// Schedules by name, for tests that need no more of a request than its shape.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/model/schedule_def.h"

namespace bubblescope::tests {

inline ValidSchedule build(std::string_view name, std::int32_t ranks, std::int32_t microbatches,
                           std::int32_t chunks = 1) {
  return build_schedule(find_schedule(name), {{ranks, chunks, microbatches, 1, {}}, {}, {}});
}

}  // namespace bubblescope::tests
