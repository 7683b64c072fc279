// The orders of schedules for small shapes, and numbers for random costs of them.
#pragma once

#include <cstdint>
#include <random>

#include "sim/model/schedule_def.h"
#include "sim/model/schedule_refusal.h"

namespace bubblescope::tests {

using Random = std::mt19937;

inline std::int64_t draw(Random& random, std::int64_t first, std::int64_t last) {
  return std::uniform_int_distribution<std::int64_t>(first, last)(random);
}

/// The largest shape that is visited.
struct SmallShapes {
  std::int32_t ranks = 6;
  std::int32_t chunks = 3;
  std::int32_t microbatches = 20;  ///< more than any rank holds
};

/// Visits the orders of a schedule for all shapes that it accepts, from one micro-batch on.
template <class Visit>
void for_each_small(const ScheduleDef& def, const SmallShapes& most, Visit visit) {
  for (std::int32_t ranks = 1; ranks <= most.ranks; ++ranks)
    for (std::int32_t chunks = 1; chunks <= most.chunks; ++chunks)
      for (std::int32_t microbatches = 1; microbatches <= most.microbatches; ++microbatches) {
        ScheduleRequest request;
        request.shape = fill_in_implied(def, {ranks, chunks, microbatches, 1, {}});
        if (request.shape.chunks != chunks && chunks > 1) continue;
        if (refuse_schedule(def, request).empty()) visit(build_order(def, request));
      }
}

}  // namespace bubblescope::tests
