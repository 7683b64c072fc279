// The memory curve of a schedule without backwards.
#include "sim/analysis/memory_curve.h"

#include <gtest/gtest.h>

#include <variant>

#include "sim/engine/simulate.h"
#include "sim/model/cost_model.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"

namespace bubblescope::tests {
namespace {

TEST(MemoryCurve, OfInferenceHoldsWhatRunsAlone) {
  ScheduleRequest request;
  request.shape.ranks = 2;
  request.shape.microbatches = 5;
  const ValidSchedule schedule = build_schedule(find_schedule("forward-only"), request);
  const Program program = std::get<Program>(bubblescope::lower(schedule));
  const Timeline timeline = simulate(program, spread(UniformCost{}, schedule));
  const MemoryModel memory;
  for (const Peak& peak : find_peaks(schedule, program, timeline, memory))
    EXPECT_EQ(peak.chunks, 1);
  const std::vector<MemoryPoint> curve = compute_memory_curve(schedule, program, timeline, memory);
  EXPECT_EQ(curve.size(), 20U);  // each of the 10 forwards allocates and releases
  EXPECT_EQ(curve.back().held.chunk_millionths, 0);
}

}  // namespace
}  // namespace bubblescope::tests
