// Tests the costs of copying activations: their entries in cost files, contention, and the
// calibration of a simulated device whose copy times follow a known formula.
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "exec/calibration/contention_costs.h"
#include "exec/calibration/copies_program.h"
#include "exec/gpu/host/gpu_job.h"
#include "exec/gpu/host/time_copies.h"
#include "exec/runtime/execute.h"
#include "sim/engine/simulate_shared.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/ir/offload.h"
#include "sim/ir/program_draft.h"
#include "sim/ir/recompute.h"
#include "sim/model/contention.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/verified_training.h"
#include "tools/commands/calibrate_copies.h"
#include "traces/costs/cost_file.h"

namespace bubblescope::tests {
namespace {

Schedule build(const std::string& name, std::int32_t microbatches = 8) {
  return *build_if_legal(find_schedule(name), {4, 1, microbatches, 1, {}});
}

Schedule offloaded(const std::string& name) { return with_offload(build(name), {}); }

Schedule with_offload_targets(Schedule schedule, bool by_host) {
  schedule.offload_target_of_rank =
      by_host ? std::vector<std::int32_t>{0, 1, 2, 3} : std::vector<std::int32_t>{3, 2, 1, 0};
  return schedule;
}

// An eviction of 10 starts together with an op of 8 on the same rank. At half the rate it has 6
// left at 8, and then continues at the full rate until 14. The op is not slowed down.
TEST(CopyCosts, ACopyTakesLongerBesideABusyRank) {
  ProgramDraft draft(1, 2);
  const std::uint32_t lane = draft.add_lane({0, "evict"});
  draft.add({{0, 1, 0, OpKind::kForward}, 0, 0, 0});
  draft.add({{0, 0, 0, OpKind::kEvict}, lane, 0, 0});
  const Program program = std::get<Program>(std::move(draft).finish());
  Contention contention{1, {{}}, {}, {2}};
  Traffic traffic;
  for (const Instruction& instruction : program.instructions)
    traffic.fixed.push_back(is_copy(instruction.op.kind) ? 10 : 8);
  const SimulatedRun run = simulate_shared(program, with_contention(traffic, program, contention));
  for (InstructionId id = 0; id < program.size(); ++id)
    EXPECT_EQ(run.timeline.end[id], is_copy(program.instructions[id].op.kind) ? 14 : 8);
}

CostTable parse(const std::string& stage, const std::string& copy) {
  return traces::parse_cost_file(R"({"format": "bubblescope-costs/1", "stages": [)" + stage + "," +
                                     stage + "," + stage + "," + stage + R"(], "copy": )" + copy +
                                     "}",
                                 "costs.json");
}

constexpr const char* kStage =
    R"({"forward": 1, "backward": 2, "activation_bytes": {"saved": 1000}})";

// 1000 bytes at 8 Gb/s, which is a byte per nanosecond, after a latency of 1 us. To other ranks it
// is 10 bytes per nanosecond, after 2 us.
TEST(CopyCosts, OfCopiesToOtherRanksAreSeparate) {
  const CostTable file = parse(kStage, R"({"latency": "1us", "bandwidth_gbps": 8,
      "slowdown": [1.25, 1.5], "to_rank": {"latency": "2us", "bandwidth_gbps": 80}})");
  const Schedule to_host = offloaded("1f1b");
  EXPECT_EQ(make_cost_model(file, to_host).stages[0].evict, 2000);
  ASSERT_TRUE(make_contention(file, to_host));
  EXPECT_EQ(make_contention(file, to_host)->copy, (Slowdown{1.25, 1.5}));
  const Schedule to_rank = build("bpipe");
  EXPECT_EQ(make_cost_model(file, to_rank).stages[0].evict, 2100);
  EXPECT_EQ(make_cost_model(file, to_rank).stages[0].load, 2100);
  EXPECT_FALSE(make_contention(file, to_rank));
  EXPECT_FALSE(make_contention(file, build("1f1b")));  // it copies nothing
}

TEST(CopyCosts, OfAStageTakePrecedence) {
  const CostTable file = parse(R"({"forward": 1, "backward": 2, "evict": "5us", "load": "6us",
                "evict_to_rank": "7us"})",
                               R"({"latency": "1us", "to_rank": {"latency": "2us"}})");
  const StageCost to_host = make_cost_model(file, offloaded("1f1b")).stages[0];
  EXPECT_EQ(to_host.evict, 5000);
  EXPECT_EQ(to_host.load, 6000);
  const StageCost to_rank = make_cost_model(file, build("bpipe")).stages[0];
  EXPECT_EQ(to_rank.evict, 7000);
  EXPECT_EQ(to_rank.load, 7000);
}

TEST(CopyCosts, EachDirectionToOtherRanksIsOptional) {
  const CostTable file = parse(R"({"forward": 1, "backward": 2, "evict": "5us",
                "load_from_rank": "9us"})",
                               R"({"latency": "1us"})");
  const StageCost to_rank = make_cost_model(file, build("bpipe")).stages[0];
  EXPECT_EQ(to_rank.evict, 5000);
  EXPECT_EQ(to_rank.load, 9000);
}

TEST(CopyCosts, AreThoseOfEachStagesSavedBytes) {
  const Schedule schedule = with_recompute(
      build("1f1b"), {Recompute::kNone, Recompute::kFull, Recompute::kFull, Recompute::kNone});
  for (const std::int32_t stage : {0, 1, 2, 3})
    EXPECT_EQ(recomputes(schedule, stage), stage == 1 || stage == 2) << stage;
  EXPECT_FALSE(recomputes(build("1f1b"), 0));
}

TEST(CopyCosts, BelowOneAreRefused) {
  EXPECT_TRUE(fails_with([&] { parse(kStage, R"({"latency": "1us", "slowdown": [1.5, 0.5]})"); },
                         "costs.json: /copy/slowdown/1: "));
}

std::vector<exec::CopyCosts> measure(const Schedule& schedule, std::int32_t ranks_per_device) {
  const Program program = exec::copies_program(schedule, ranks_per_device);
  const exec::TrainingOptions options = small_model(2);
  const ValidSchedule valid = require_valid(schedule);
  const exec::JobRequest request{valid, program, &options, {}, exec::WaitMode::kSpin, {}};
  const exec::Job job = exec::start_gpu_job(fake_gpu_calls(), request, {});
  const exec::Execution execution = exec::execute(program, *job.backend, "cuda", {1, 2, {}});
  if (execution.breakdown) throw Error(execution.breakdown->fault, execution.breakdown->message);
  return exec::find_copy_costs({program, execution.steps}, {schedule.stages(), ranks_per_device});
}

// A stage in the middle keeps 9 matrices, its input among them; the last one keeps 3 more. Each
// takes a copy of 100 ns, plus 2 ns per byte. A matrix has 8 rows of 4-byte values. The columns are
// 8 each for input, norm, mixed, middle and second norm, 24 for queries, keys and values, 2 x 4 for
// the weights of attention, and 32 each before and after the GELU: 136 in all. The last stage adds
// 13 for probabilities, and 8 each for the head's input and norm.
TEST(CopyCosts, FindTheLawOfTheDevice) {
  constexpr Nanos kMiddle = 9 * 100 + 2 * 8 * 136 * 4;
  constexpr Nanos kLast = 12 * 100 + 2 * 8 * (136 + 29) * 4;
  const double factors[] = {1, 1.2, 1.5, 1.75, 2};
  for (const bool by_host : {true, false}) {
    FakeGpu& gpu = reset_fake_gpu(1);
    gpu.times.nanos_per_entry = 300;
    gpu.times.nanos_per_copy = 100;
    gpu.times.nanos_per_byte = 2;
    gpu.times.copies = {1.2, 1.5, 1.75, 2};
    const auto costs = measure(with_offload_targets(build("1f1b"), by_host), 4);
    ASSERT_EQ(costs.size(), 4u);
    for (const auto* const seen : {&costs[1].evict, &costs[1].load}) {
      ASSERT_EQ(seen->size(), 5u);
      for (std::size_t busy = 0; busy < seen->size(); ++busy) {
        ASSERT_TRUE((*seen)[busy]) << busy;
        // An op that begins or ends during the copy counts for up to a quarter of a rank.
        EXPECT_NEAR(static_cast<double>((*seen)[busy]->mean), kMiddle * factors[busy],
                    0.03 * kMiddle)
            << busy;
      }
    }
    EXPECT_EQ(costs[3].evict[0]->mean, kLast);
    EXPECT_EQ(costs[3].load[0]->mean, kLast);
    EXPECT_EQ(gpu.handles, 0);
  }
}

TEST(CopyCosts, AreFoundWithoutContentionIfRanksHaveTheirOwnDevices) {
  reset_fake_gpu(4).times.nanos_per_copy = 100;
  const auto costs = measure(with_offload_targets(build("1f1b"), true), 1);
  ASSERT_EQ(costs[1].evict.size(), 2u);
  ASSERT_TRUE(costs[1].evict[0]);
  EXPECT_EQ(costs[1].evict[0]->mean, 900);
}

// Copies of 4 KiB to 64 MiB take 100 ns and 2 ns per byte.
TEST(CopyCosts, ToTheHostAreTimedBySize) {
  FakeGpu& gpu = reset_fake_gpu(1);
  gpu.times.nanos_per_copy = 100;
  gpu.times.nanos_per_byte = 2;
  for (const exec::MessageTime& time :
       exec::time_host_copies(fake_gpu_calls(), 1, exec::Share::kGreen))
    EXPECT_EQ(time.nanos, 100 + 2 * time.bytes);
  EXPECT_EQ(gpu.handles, 0);
}

exec::Estimate mean_of(Nanos nanos) { return {nanos, 0, 0, 8}; }

// 2 ns per byte are 4 Gb/s. Evictions of 1000 bytes in 2300 and of 2000 in 4500 take 300 and 500
// more than that, 400 on average. With one busy rank they take 1.5 times as long; with two, nothing
// was measured.
TEST(CopyCosts, AreWrittenAsLatencyBandwidthAndSlowdown) {
  tools::CopyEvidence evidence;
  evidence.by_size = {{1 << 10, 5000}, {1 << 20, 2 << 20}, {1 << 21, 2 << 21}};
  evidence.kept = {1000, 2000, 3000};
  evidence.stages = {{{mean_of(2300), mean_of(3450), std::nullopt}, {}},
                     {{}, {mean_of(4500), mean_of(6750), std::nullopt}},
                     {}};
  const CopyEntry copy = tools::estimate_copy(evidence);
  EXPECT_EQ(copy.latency, 400);
  EXPECT_DOUBLE_EQ(copy.bandwidth_gbps.value(), 4);
  EXPECT_EQ(copy.slowdown, (std::vector<double>{1.5, 1.5}));
}

TEST(CopyCosts, AProgramOfCopiesWithoutASecondMicrobatchHasNoContention) {
  const Schedule schedule = with_offload_targets(build("gpipe", 1), true);
  EXPECT_EQ(exec::copies_program(schedule, 4).size(), exec::copies_program(schedule, 1).size());
}

}  // namespace
}  // namespace bubblescope::tests
