// Renumbers micro-batches into slices.
#include "schedules/slices.h"

namespace bubblescope::schedules {

Shape count_slices(Shape shape) {
  shape.microbatches *= shape.slices;
  shape.slices = 1;
  return shape;
}

Visits visits_of_slices(Visits visits, std::int32_t slices) {
  for (Visit& visit : visits.forward) {
    visit.slice = static_cast<std::int16_t>(visit.microbatch % slices);
    visit.microbatch /= slices;
  }
  for (Visit& visit : visits.backward) {
    visit.slice = static_cast<std::int16_t>(slices - 1 - visit.microbatch % slices);
    visit.microbatch /= slices;
  }
  return visits;
}

}  // namespace bubblescope::schedules
