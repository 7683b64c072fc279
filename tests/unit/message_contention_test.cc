// Tests the contention of messages: busy ranks slow them down, and calibration measures by how
// much.
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "exec/calibration/contention_costs.h"
#include "exec/calibration/contention_program.h"
#include "exec/gpu/host/gpu_job.h"
#include "exec/gpu/host/time_copies.h"
#include "exec/runtime/execute.h"
#include "sim/engine/simulate_shared.h"
#include "sim/ir/error.h"
#include "sim/ir/program_draft.h"
#include "sim/model/contention.h"
#include "sim/model/schedule_def.h"
#include "tests/support/error_text.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/verified_training.h"
#include "tools/commands/calibrate_messages.h"
#include "traces/costs/cost_file.h"
#include "traces/costs/cost_file_writer.h"

namespace bubblescope::tests {
namespace {

/// A program in which 0F0 runs at the same time as a message from rank 0 that 1F0 waits for.
Program make_program() {
  ProgramDraft draft(2, 3);
  draft.add({{0, 0, 0, OpKind::kForward}, 0, 0, 0});
  draft.add({{0, 0, 0, OpKind::kSendForward}, kNoLane, 0, 1});
  draft.add({{1, 0, 0, OpKind::kForward}, 1, 1, 1});
  draft.wait_for(1);
  return std::get<Program>(std::move(draft).finish());
}

/// The end times of the message and of 0F0. Without contention they take 10 and `forward`.
std::array<Nanos, 2> ends_of(Nanos forward, const Slowdown& ops, const Slowdown& messages) {
  const Program program = make_program();
  Traffic traffic;
  traffic.fixed.assign(program.size(), 0);
  Contention contention{2, {{}, {}}, messages};
  for (auto& kinds : contention.stages) kinds.fill(ops);
  std::array<InstructionId, 2> ids{};
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    traffic.fixed[id] = is_message(instruction) ? 10 : instruction.rank == 0 ? forward : 50;
    if (is_message(instruction)) ids[0] = id;
    if (!is_message(instruction) && instruction.rank == 0) ids[1] = id;
  }
  const SimulatedRun run = simulate_shared(program, with_contention(traffic, program, contention));
  return {run.timeline.end[ids[0]], run.timeline.end[ids[1]]};
}

TEST(MessageContention, AMessageTakesLongerBesideABusyRank) {
  EXPECT_EQ(ends_of(100, {}, {})[0], 10);
  EXPECT_EQ(ends_of(100, {}, {2})[0], 20);
  // At half the rate, 5 of the message's 10 remain at 10, so it ends at 15.
  EXPECT_EQ(ends_of(10, {}, {2})[0], 15);
}

// 0F0 has no contention until the message arrives at 10; its other 10 of 20 run at the same time as
// 1F0.
TEST(MessageContention, AMessageMakesNoRankBusy) {
  EXPECT_EQ(ends_of(20, {1.5}, {1})[1], 25);
  // If the message takes 20, 0F0 ends before 1F0 starts.
  EXPECT_EQ(ends_of(20, {1.5}, {2})[1], 20);
}

constexpr const char* kStages = R"("stages": [{"forward": 1, "backward": 2}])";

CostTable parse(const std::string& message) {
  return traces::parse_cost_file(R"({"format": "bubblescope-costs/1", )" + std::string(kStages) +
                                     R"(, "message": )" + message + "}",
                                 "costs.json");
}

TEST(MessageContention, ABandwidthDependsOnTheSize) {
  const auto nanos_of = [](const char* bytes) {
    return parse(std::string(R"({"latency": "1us", "bytes": )") + bytes +
                 R"(, "bandwidth_gbps": [[1000, 8], [2000, 16]]})")
        .message.nanos();
  };
  EXPECT_EQ(nanos_of("500"), 1000 + 500);    // 8 Gb/s, as of the smallest size: 1 byte per ns
  EXPECT_EQ(nanos_of("1500"), 1000 + 1000);  // half-way, 12 Gb/s: 1.5 bytes per ns
  EXPECT_EQ(nanos_of("4000"), 1000 + 2000);  // 16 Gb/s
}

TEST(MessageContention, CostFilesGiveTheTimeOfMessages) {
  const Schedule schedule = build_schedule(find_schedule("gpipe"), {{1, 1, 1, 1, {}}, {}, {}});
  const auto made =
      make_contention(parse(R"({"latency": "10us", "contended": ["12us", "15us"]})"), schedule);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->message, (Slowdown{1.2, 1.5}));
  EXPECT_FALSE(make_contention(parse(R"({"latency": "10us"})"), schedule));
  EXPECT_TRUE(fails_with(
      [&] { make_contention(parse(R"({"latency": "10us", "contended": ["9us"]})"), schedule); },
      "costs.json: /message/contended: 9"));
}

/// Runs steps in which the ranks of a training job take turns on a device that slows copies down.
std::vector<Timeline> take_turns(const Schedule& schedule, const Program& program) {
  const exec::TrainingOptions options = small_model(2);
  const ValidSchedule valid = require_valid(schedule);
  const exec::JobRequest request{valid, program, &options, {}, exec::WaitMode::kSpin, {}};
  const exec::Job job = exec::start_gpu_job(fake_gpu_calls(), request, {});
  exec::Execution execution = exec::execute(program, *job.backend, "cuda", {1, 2, {}});
  if (execution.breakdown) throw Error(execution.breakdown->fault, execution.breakdown->message);
  return std::move(execution.steps);
}

// A message has 2 sequences of 4 tokens and 8 columns of 4 bytes: 256 bytes at 10 ns each.
TEST(MessageContention, FindsTheLawOfTheDevice) {
  FakeGpu& gpu = reset_fake_gpu(1);
  gpu.times.nanos_per_byte = 10;
  gpu.times.nanos_per_entry = 3000;
  gpu.times.copies = {1.2, 1.5, 1.75, 2};
  const Schedule schedule = build_schedule(find_schedule("1f1b"), {{4, 1, 8, 1, {}}, {}, {}});
  const Program program = exec::contention_program(schedule, 4);
  const std::vector<Timeline> steps = take_turns(schedule, program);
  const exec::Observation observation{program, steps};
  const auto costs = exec::find_message_costs({&observation, 1}, 4);
  ASSERT_EQ(costs.size(), 5u);
  const double factors[] = {1, 1.2, 1.5, 1.75, 2};
  for (std::size_t busy = 0; busy < costs.size(); ++busy) {
    ASSERT_TRUE(costs[busy]) << busy;
    // An op that begins or ends during the message counts for up to a quarter of a rank.
    EXPECT_NEAR(static_cast<double>(costs[busy]->mean), 2560 * factors[busy], 0.03 * 2560) << busy;
  }
}

TEST(MessageContention, CopiesAreTimedBySize) {
  FakeGpu& gpu = reset_fake_gpu(2);
  gpu.times.nanos_per_copy = 1500;
  gpu.times.nanos_per_byte = 0.25;
  const std::vector<exec::MessageTime> times =
      exec::time_copies(fake_gpu_calls(), 2, exec::Share::kGreen);
  ASSERT_GE(times.size(), 5u);
  for (const exec::MessageTime& time : times) EXPECT_EQ(time.nanos, 1500 + time.bytes / 4);
  EXPECT_EQ(gpu.bytes, 0);
  EXPECT_EQ(gpu.handles, 0);
}

// A copy of 8000 bytes takes 1000 + 1000 ns, which is 64 Gb/s beyond the smallest copy. From
// producer to consumer a message takes 5000, so 3000 are spent outside the copy. When ranks took
// turns, copies took 2000 without contention and 2600 with one busy rank.
TEST(MessageContention, MeasurementsBecomeAnEntryOfTheCostFile) {
  const Program program = make_program();
  Timeline beside;
  beside.start.assign(3, 0);
  beside.end.assign(3, 0);
  Timeline alone = beside;
  for (InstructionId id = 0; id < 3; ++id) {
    const bool is_copy = is_message(program.instructions[id]);
    beside.end[id] = is_copy ? 2600 : 3000;
    alone.end[id] = is_copy ? 2000 : 0;
  }
  const std::vector<Timeline> turns{beside, alone};
  const std::vector<Timeline> real{alone};
  const tools::MessageEvidence evidence{
      {{program, real}}, {{program, turns}}, 2, 5000, 8000, {{64, 1000}, {8000, 2000}}};
  // 1F0 of `beside` computes too, so two ranks are busy.
  const std::string file = traces::write_cost_file(tools::with_message({}, evidence));
  EXPECT_EQ(nlohmann::ordered_json::parse(file)["message"].dump(),
            R"({"latency":"4000ns","bytes":8000,"bandwidth_gbps":[[8000,64.0]],)"
            R"("contended":["5300ns","5600ns"]})");
}

}  // namespace
}  // namespace bubblescope::tests
