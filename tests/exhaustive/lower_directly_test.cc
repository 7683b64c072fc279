// Compares the fast lowering with the general one: the same instructions in the same order.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "sim/ir/lower_dataflow.h"
#include "sim/model/schedule_def.h"
#include "sim/model/schedule_refusal.h"
#include "tests/support/as_written.h"
#include "tests/support/random_schedule.h"

namespace bubblescope::tests {
namespace {

constexpr Overlap kOverlaps[] = {Overlap::kSerial, Overlap::kAtomic, Overlap::kFused};

void expect_same(const Program& direct, const Program& sorted, const std::string& what) {
  ASSERT_EQ(direct.size(), sorted.size()) << what;
  EXPECT_EQ(direct.ranks, sorted.ranks);
  EXPECT_EQ(direct.dependency_begin, sorted.dependency_begin) << what;
  EXPECT_EQ(direct.dependencies, sorted.dependencies) << what;
  ASSERT_EQ(direct.lanes.size(), sorted.lanes.size());
  for (std::size_t lane = 0; lane < direct.lanes.size(); ++lane) {
    EXPECT_EQ(direct.lanes[lane].name, sorted.lanes[lane].name);
    EXPECT_EQ(direct.lanes[lane].rank, sorted.lanes[lane].rank);
  }
  for (InstructionId id = 0; id < direct.size(); ++id) {
    const Instruction& left = direct.instructions[id];
    const Instruction& right = sorted.instructions[id];
    ASSERT_TRUE(left.op == right.op && left.lane == right.lane && left.rank == right.rank &&
                left.peer == right.peer && left.role == right.role)
        << what << ", instruction " << id << ": " << to_string(left.op) << " or "
        << to_string(right.op);
  }
}

/// Whether the fast lowering accepted the schedule; if so, checks that the result is the same.
bool is_taken(const Schedule& schedule, Overlap overlap, const std::string& what) {
  const std::optional<Program> direct = lower_directly(schedule, overlap);
  if (!direct) return false;
  const auto sorted = lower_by_sorting(schedule, overlap);
  if (const Program* program = std::get_if<Program>(&sorted))
    expect_same(*direct, *program, what);
  else
    ADD_FAILURE() << what << " deadlocks";
  return true;
}

/// Visits each small shape that a schedule accepts.
template <class Visit>
void for_each_small(const ScheduleDef& def, Visit visit) {
  for (std::int32_t ranks = 1; ranks <= 6; ++ranks)
    for (std::int32_t chunks = 1; chunks <= 3; ++chunks)
      for (std::int32_t microbatches = 1; microbatches <= 8; ++microbatches)
        for (std::int32_t slices = 1; slices <= (def.slices_sequences ? 3 : 1); ++slices) {
          ScheduleRequest request;
          request.shape = {ranks, chunks, microbatches, slices, {}};
          if (def.implied_chunks && !def.repeats_chunks && chunks != *def.implied_chunks) continue;
          if (def.implied_slices != 1) request.shape.slices = def.implied_slices;
          if (refuse_schedule(def, request).empty()) visit(build_schedule(def, request));
        }
}

TEST(LowerDirectly, GivesTheProgramOfEverySchedule) {
  std::set<std::string> taken;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    if (def.reads_costs) continue;
    for_each_small(def, [&](const Schedule& schedule) {
      for (const Overlap overlap : kOverlaps)
        if (is_taken(schedule, overlap, def.name)) taken.insert(def.name);
    });
  }
  // The schedules that a planner evaluates most. bpipe copies and chimera-doubling fuses forwards.
  for (const char* name : {"1f1b", "chimera", "dualpipe", "dualpipev", "gpipe", "hanayo",
                           "interleaved", "interleaved-zb", "seq1f1b", "zb-h1", "zb-v"})
    EXPECT_TRUE(taken.contains(name)) << name;
  for (const char* name : {"bpipe", "chimera-doubling"}) EXPECT_FALSE(taken.contains(name)) << name;
}

TEST(LowerDirectly, GivesTheProgramOfRandomSchedules) {
  int taken = 0;
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    const Schedule schedule = random_schedule(seed, {.slices = seed % 2 == 0});
    for (const Overlap overlap : kOverlaps)
      if (is_taken(schedule, overlap, "seed " + std::to_string(seed))) ++taken;
  }
  EXPECT_GT(taken, 1500);  // all but the fused overlap
}

TEST(LowerDirectly, LeavesDeadlocksToTheGeneralLowering) {
  ScheduleRequest request;
  request.shape = {2, 1, 2, 1, {}};
  Schedule schedule = build_schedule(find_schedule("gpipe"), request);
  // Rank 0 first runs a gradient that needs its own second forward.
  std::swap(schedule.order[0][1], schedule.order[0][2]);
  std::swap(schedule.order[1][0], schedule.order[1][1]);
  std::swap(schedule.order[1][2], schedule.order[1][3]);
  EXPECT_FALSE(lower_directly(schedule, Overlap::kAtomic));
  EXPECT_TRUE(std::holds_alternative<Deadlock>(lower_by_sorting(schedule, Overlap::kAtomic)));
}

}  // namespace
}  // namespace bubblescope::tests
