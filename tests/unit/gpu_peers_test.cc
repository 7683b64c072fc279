// Several devices in one process: messages are copies by the devices' copy engines, which wait for
// events of the other device and not for the host. No plan of copies and events can deadlock, also
// if a rank is late, and a rank that is lost is named.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "exec/gpu/host/gpu_job.h"
#include "exec/gpu/host/stream_plan.h"
#include "exec/runtime/execute.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "sim/model/injection.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

constexpr std::int32_t kDevices[] = {2, 4, 8};

/// Calls use(schedule, program, mode) for every schedule and p2p mode without a deadlock of its
/// own.
template <class Use>
int for_each_program(std::int32_t ranks, const Use& use) {
  int programs = 0;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    const auto schedule = build_if_legal(def, {ranks, 1, 2 * ranks, 1, {}});
    if (!schedule) continue;
    for (const Named<P2pMode>& mode : kP2pModes) {
      SCOPED_TRACE(def.name + ", " + std::string(mode.name) + ", " + std::to_string(ranks));
      LowerOptions options;
      options.mode = mode.choice;
      options.eager_slots = 2;
      const auto lowered = lower(*schedule, options);
      if (std::holds_alternative<Deadlock>(lowered)) continue;
      use(*schedule, std::get<Program>(lowered));
      ++programs;
    }
  }
  return programs;
}

struct Outcome {
  std::size_t left = 0;   ///< instructions that cannot run
  std::size_t early = 0;  ///< instructions that run before what they need
};

/// Takes tasks from the heads of random streams, as devices might that are fast or slow at any
/// time. A wait for an event that was not recorded yet when it was enqueued would be no wait; a
/// stream's commands run in the order of enqueueing.
Outcome run_in_any_order(const Program& program, const exec::StreamPlan& plan, std::mt19937& dice) {
  std::vector<std::vector<InstructionId>> queues(plan.streams.size());
  for (const InstructionId id : plan.order) queues[plan.stream_of[id]].push_back(id);
  std::vector<std::size_t> heads(queues.size(), 0);
  std::vector<bool> ended(program.size(), false);
  Outcome outcome{program.size(), 0};
  for (bool progressed = true; std::exchange(progressed, false);) {
    std::vector<std::size_t> streams(queues.size());
    for (std::size_t at = 0; at < streams.size(); ++at) streams[at] = at;
    std::shuffle(streams.begin(), streams.end(), dice);
    for (const std::size_t stream : streams) {
      if (heads[stream] == queues[stream].size()) continue;
      const InstructionId id = queues[stream][heads[stream]];
      const auto waits = plan.waits_of(id);
      if (!std::all_of(waits.begin(), waits.end(), [&](InstructionId at) { return ended[at]; }))
        continue;
      for (const InstructionId dependency : program.dependencies_of(id))
        outcome.early += !ended[dependency];
      ended[id] = progressed = true;
      ++heads[stream];
      --outcome.left;
    }
  }
  return outcome;
}

TEST(GpuPeers, NoPlanOfCopiesAndEventsDeadlocks) {
  std::mt19937 dice(1);
  for (const std::int32_t devices : kDevices) {
    const int programs = for_each_program(devices, [&](const Schedule&, const Program& program) {
      const exec::StreamPlan plan = exec::plan_streams(program);
      for (InstructionId id = 0; id < program.size(); ++id)
        for (const InstructionId awaited : plan.waits_of(id))
          ASSERT_LT(plan.place[awaited], plan.place[id]) << "waits for an event not yet recorded";
      for (int round = 0; round < 3; ++round) {
        const Outcome outcome = run_in_any_order(program, plan, dice);
        ASSERT_EQ(outcome.left, 0u);
        ASSERT_EQ(outcome.early, 0u);
      }
    });
    EXPECT_GT(programs, 100);
  }
}

// The first op of a rank changes places with its last, which waits for the other rank.
TEST(GpuPeers, TheSearchForDeadlocksFindsOne) {
  const Schedule schedule = build_schedule(find_schedule("1f1b"), {{2, 1, 4, 1, {}}, {}, {}});
  const Program program = std::get<Program>(lower(schedule, {}));
  exec::StreamPlan plan = exec::plan_streams(program);
  std::vector<InstructionId> computes;
  for (const InstructionId id : plan.order)
    if (plan.stream_of[id] == plan.stream_of[plan.order[0]]) computes.push_back(id);
  std::swap(plan.order[plan.place[computes.front()]], plan.order[plan.place[computes.back()]]);
  std::mt19937 dice(1);
  EXPECT_GT(run_in_any_order(program, plan, dice).left, 0u);
}

exec::Execution run(const Schedule& schedule, const Program& program,
                    exec::BackendRequest request = {}) {
  std::vector<Nanos> durations;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    const bool takes_time = instruction.role == Role::kWork;
    durations.push_back(!takes_time ? 0 : is_message(instruction) ? 7 + id % 5 : 1000 + id % 97);
  }
  const ValidSchedule valid = require_valid(schedule);
  const exec::JobRequest job{valid, program, nullptr, durations, exec::WaitMode::kSpin, {}};
  const exec::Job started = exec::start_gpu_job(fake_gpu_calls(), job, std::move(request));
  return exec::execute(program, *started.backend, "cuda", {0, 1, {}});
}

TEST(GpuPeers, EveryScheduleRunsOnADevicePerRankInEveryMode) {
  for (const std::int32_t devices : kDevices) {
    reset_fake_gpu(devices);
    for_each_program(devices, [&](const Schedule& schedule, const Program& program) {
      const exec::Execution execution = run(schedule, program);
      ASSERT_FALSE(execution.breakdown) << execution.breakdown->message;
    });
  }
}

// A rank that is late delays the others and nothing else.
TEST(GpuPeers, LateRanksAreWaitedFor) {
  for (const std::int32_t devices : kDevices)
    for (const char* name : {"1f1b", "zb-h1", "interleaved"})
      for (std::int32_t rank = 0; rank < devices; ++rank) {
        SCOPED_TRACE(std::string(name) + ", rank " + std::to_string(rank));
        reset_fake_gpu(devices);
        const Schedule schedule =
            build_schedule(find_schedule(name), {{devices, 1, 2 * devices, 1, {}}, {}, {}});
        const Program program = std::get<Program>(lower(schedule, {}));
        const Nanos usual = compute_makespan(run(schedule, program).steps[0]);
        const Op& op = schedule.order[static_cast<std::size_t>(rank)][1];
        exec::BackendRequest request;
        request.injections = {parse_injection("rank=" + std::to_string(rank) +
                                              ",op=" + to_string(op) + ",delay=1ms")};
        const exec::Execution execution = run(schedule, program, std::move(request));
        ASSERT_FALSE(execution.breakdown) << execution.breakdown->message;
        EXPECT_GE(compute_makespan(execution.steps[0]), usual);
        EXPECT_LE(compute_makespan(execution.steps[0]), usual + 1'000'000);
      }
}

TEST(GpuPeers, LostRanksAreNamed) {
  for (const std::int32_t devices : kDevices)
    for (std::int32_t rank = 0; rank < devices; ++rank) {
      reset_fake_gpu(devices);
      const Schedule schedule =
          build_schedule(find_schedule("1f1b"), {{devices, 1, 2 * devices, 1, {}}, {}, {}});
      const Program program = std::get<Program>(lower(schedule, {}));
      const std::string op = to_string(schedule.order[static_cast<std::size_t>(rank)][1]);
      exec::BackendRequest request;
      request.injections = {parse_injection("rank=" + std::to_string(rank) + ",op=" + op + ",die")};
      const exec::Execution execution = run(schedule, program, std::move(request));
      ASSERT_TRUE(execution.breakdown);
      EXPECT_NE(
          execution.breakdown->message.find("rank " + std::to_string(rank) + " died at " + op),
          std::string::npos)
          << execution.breakdown->message;
    }
}

}  // namespace
}  // namespace bubblescope::tests
