// Memory that ops and copies share: no block is reused while another stream may still use it.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <variant>

#include "exec/gpu/host/activation_pool.h"
#include "exec/gpu/host/happens_before.h"
#include "exec/gpu/host/memory_tracker.h"
#include "sim/ir/lower.h"
#include "sim/ir/offload.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/fake_gpu.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

struct OneRank {
  Program program;
  std::map<std::string, InstructionId> id;
};

/// Ops beside copies, which have streams of their own.
OneRank make_one_rank() {
  OneRank made;
  made.program = std::get<Program>(
      lower(traces::parse_schedule_text("0F0 0F1 0EVICT0 0F2 0B2 0LOAD0 0B1 0B0"), LowerOptions()));
  for (InstructionId id = 0; id < made.program.size(); ++id)
    made.id[to_string(made.program.instructions[id].op)] = id;
  return made;
}

TEST(HappensBefore, IsThatOfLanesAndOfWaits) {
  const OneRank on = make_one_rank();
  const exec::HappensBefore order(on.program);
  const auto happens_before = [&](const char* first, const char* then) {
    return order.happens_before(on.id.at(first), on.id.at(then));
  };
  EXPECT_TRUE(happens_before("0F0", "0F1"));
  EXPECT_TRUE(happens_before("0F0", "0EVICT0"));
  EXPECT_FALSE(happens_before("0EVICT0", "0F1"));  // side by side
  EXPECT_TRUE(happens_before("0EVICT0", "0F2"));   // because 0F2 needs the memory
  EXPECT_TRUE(happens_before("0EVICT0", "0B0"));   // because it follows 0F2
  EXPECT_TRUE(happens_before("0B2", "0LOAD0"));
  EXPECT_FALSE(happens_before("0LOAD0", "0B1"));
  EXPECT_TRUE(happens_before("0LOAD0", "0B0"));
  EXPECT_FALSE(happens_before("0F2", "0F1"));
  EXPECT_FALSE(happens_before("0F1", "0F1"));
}

TEST(HappensBefore, HoldsInEveryScheduleAsFarAsTheProgramSaysSo) {
  const Schedule schedule =
      with_offload(build_schedule(find_schedule("zb-h1"), {{3, 1, 6, 1, {}}, {}, {}}), {});
  const Program program = std::get<Program>(lower(schedule, LowerOptions()));
  const exec::HappensBefore order(program);
  for (InstructionId id = 0; id < program.size(); ++id)
    for (const InstructionId before : program.dependencies_of(id)) {
      const Instruction& waits = program.instructions[id];
      const Instruction& awaited = program.instructions[before];
      if (waits.rank != awaited.rank || is_message(awaited.op.kind) || is_message(waits.op.kind))
        continue;
      EXPECT_TRUE(order.happens_before(before, id));
      EXPECT_FALSE(order.happens_before(id, before));
    }
}

TEST(ActivationPool, ReusesNothingThatACopyMayStillRead) {
  const FakeGpu& gpu = reset_fake_gpu(1);
  const exec::GpuRuntime device(fake_gpu_calls());
  const OneRank on = make_one_rank();
  const exec::HappensBefore order(on.program);
  exec::ActivationPool pool(device, 0);
  pool.set_order(order);
  pool.set_user(on.id.at("0F0"));
  void* const kept = pool.acquire(100);
  pool.set_user(on.id.at("0EVICT0"));
  pool.release(kept, 100);
  pool.set_user(on.id.at("0F1"));  // is enqueued later, but may run while the copy reads
  void* const other = pool.acquire(100);
  EXPECT_NE(other, kept);
  pool.set_user(on.id.at("0F2"));
  EXPECT_EQ(pool.acquire(100), kept);
  EXPECT_EQ(gpu.bytes, 200);
}

TEST(ActivationPool, ForgetsItsUsersBetweenSteps) {
  reset_fake_gpu(1);
  const exec::GpuRuntime device(fake_gpu_calls());
  const OneRank on = make_one_rank();
  const exec::HappensBefore order(on.program);
  exec::ActivationPool pool(device, std::nullopt);
  pool.set_order(order);
  pool.set_user(on.id.at("0LOAD0"));
  void* const piece = pool.acquire(100);
  pool.release(piece, 100);
  pool.forget_users();
  pool.set_user(on.id.at("0EVICT0"));
  EXPECT_EQ(pool.acquire(100), piece);
}

// A takes 3 at 0 and gives 2 back at 10. B takes 4 at 9, so the peak is 3 + 4. In the order of the
// program it would be 3 - 2 + 4.
TEST(MemoryTracker, IsSummedInTheOrderOfTime) {
  exec::MemoryTracker held(3, 1);
  for (InstructionId id = 0; id < 3; ++id) held.begin(id);
  held.change(0, 0, 3);
  held.change(1, 0, -2);
  held.change(2, 0, 4);
  held.note_step({});
  EXPECT_EQ(held.peaks()[0], 5);
  const exec::Span spans[] = {{0, 0, 5}, {1, 5, 10}, {2, 9, 20}};
  held.note_step([&](InstructionId id) { return spans[id]; });
  EXPECT_EQ(held.peaks()[0], 7);
}

}  // namespace
}  // namespace bubblescope::tests
