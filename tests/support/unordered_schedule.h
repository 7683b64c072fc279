// A schedule of which only the shape and the placement matter.
#pragma once

#include <cstdint>

#include "sim/model/model_step.h"

namespace bubblescope::tests {

inline Schedule unordered(std::int32_t ranks, std::int32_t chunks) {
  Shape shape;
  shape.ranks = ranks;
  shape.chunks = chunks;
  shape.microbatches = 4;
  return make_unordered_schedule(shape);
}

}  // namespace bubblescope::tests
