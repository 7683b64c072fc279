// The executor follows the Program's rule: an instruction starts when it is first in its lane and
// all its dependencies have ended.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <stdexcept>
#include <string>
#include <variant>

#include "exec/runtime/execute.h"
#include "exec/runtime/timed_work.h"
#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"

namespace bubblescope::tests {
namespace {

constexpr Nanos kMillisecond = 1'000'000;

struct Case {
  Schedule schedule;
  Program program;
};

Case lowered(const std::string& name, std::int32_t ranks, std::int32_t microbatches) {
  Case made;
  made.schedule = build_schedule(find_schedule(name), {{ranks, 1, microbatches, 1, {}}, {}, {}});
  made.program = std::get<Program>(lower(made.schedule));
  return made;
}

/// Some schedules require sliced sequences.
Schedule build_whole_or_sliced(const ScheduleDef& def) {
  try {
    return build_schedule(def, {{4, 1, 8, 1, {}}, {}, {}});
  } catch (const Error&) {
    return build_schedule(def, {{4, 1, 8, 4, {}}, {}, {}});
  }
}

exec::Execution run(const Program& program, exec::BackendRequest request,
                    const exec::ExecuteOptions& options = {}) {
  const auto backend = exec::find_backend("cpu").make(std::move(request), program);
  return exec::execute(program, *backend, "cpu", options);
}

exec::Work no_work() {
  return [](const exec::WorkItem& item) { return item.clock.now(); };
}

void expect_rule_of_the_machine(const Program& program, const Timeline& timeline) {
  ASSERT_EQ(timeline.start.size(), program.size());
  std::vector<Nanos> lane_end(program.lanes.size(), 0);
  for (InstructionId id = 0; id < program.size(); ++id) {
    EXPECT_GE(timeline.end[id], timeline.start[id]);
    for (const InstructionId dependency : program.dependencies_of(id))
      EXPECT_GE(timeline.start[id], timeline.end[dependency]) << id << " after " << dependency;
    const std::uint32_t lane = program.instructions[id].lane;
    if (lane == kNoLane) continue;
    EXPECT_GE(timeline.start[id], lane_end[lane]);
    lane_end[lane] = timeline.end[id];
  }
}

TEST(Execute, KeepsTheRuleOfTheMachineInEverySchedule) {
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    SCOPED_TRACE(def.name);
    const Schedule schedule = build_whole_or_sliced(def);
    const Program program = std::get<Program>(lower(schedule));
    const exec::Execution execution = run(program, {no_work(), {}}, {1, 2, {}});
    ASSERT_FALSE(execution.breakdown);
    ASSERT_EQ(execution.steps.size(), 2u);
    for (const Timeline& timeline : execution.steps) expect_rule_of_the_machine(program, timeline);
  }
}

TEST(Execute, PostedMessagesKeepTheRuleOfTheMachineInEveryMode) {
  const Schedule schedule = lowered("1f1b", 4, 8).schedule;
  for (const Named<P2pMode>& mode : kP2pModes) {
    SCOPED_TRACE(mode.name);
    LowerOptions options;
    options.mode = mode.choice;
    options.eager_slots = 2;
    const auto program = lower(schedule, options);
    if (std::holds_alternative<Deadlock>(program)) continue;
    const exec::Execution execution = run(std::get<Program>(program), {no_work(), {}});
    ASSERT_FALSE(execution.breakdown);
    expect_rule_of_the_machine(std::get<Program>(program), execution.steps[0]);
  }
}

TEST(Execute, RunsEveryInstructionOnceInEveryStep) {
  const Case made = lowered("zb-h1", 4, 8);
  std::vector<std::atomic<int>> runs(made.program.size());
  const exec::Work work = [&](const exec::WorkItem& item) {
    ++runs[item.id];
    return item.clock.now();
  };
  int steps_seen = 0;
  run(made.program, {work, {}}, {1, 2, [&] { ++steps_seen; }});
  for (const auto& count : runs) EXPECT_EQ(count, 3);
  EXPECT_EQ(steps_seen, 3);
}

TEST(Execute, IsAnalyzedLikeAPrediction) {
  const Case made = lowered("1f1b", 4, 8);
  const std::vector<Nanos> durations(made.program.size(), kMillisecond / 2);
  const exec::Execution execution =
      run(made.program, {exec::play(made.program, durations, exec::WaitMode::kSleep), {}});
  const BubbleReport report = analyze(made.schedule, made.program, execution.steps[0]);
  EXPECT_EQ(report.source, "cpu");
  const Timeline predicted = simulate(made.program, durations);
  // Times count from the step's zero: on a busy machine the first op may begin, and be recorded,
  // late.
  const auto last_end = [](const Timeline& step) {
    return *std::max_element(step.end.begin(), step.end.end());
  };
  EXPECT_GE(last_end(execution.steps[0]), last_end(predicted) * 9 / 10);
  for (const RankReport& rank : report.ranks) EXPECT_EQ(rank.busy + rank.idle, report.makespan);
}

TEST(Execute, MessagesAreDelaysOutsideOfLanes) {
  const Case made = lowered("gpipe", 2, 4);
  std::vector<Nanos> durations(made.program.size(), 0);
  for (InstructionId id = 0; id < made.program.size(); ++id)
    if (is_message(made.program.instructions[id])) durations[id] = 200 * kMillisecond;
  const exec::Execution execution =
      run(made.program, {exec::play(made.program, durations, exec::WaitMode::kSleep), {}});
  // All four forwards are sent at once, so the last message leaves before the first one arrives.
  const Timeline& step = execution.steps[0];
  Nanos first_arrival = std::numeric_limits<Nanos>::max();
  Nanos last_departure = 0;
  for (InstructionId id = 0; id < made.program.size(); ++id) {
    const Instruction& instruction = made.program.instructions[id];
    if (!is_message(instruction) || instruction.op.kind != OpKind::kSendForward) continue;
    first_arrival = std::min(first_arrival, step.end[id]);
    last_departure = std::max(last_departure, step.start[id]);
  }
  EXPECT_LT(last_departure, first_arrival);
}

TEST(Execute, AnExceptionOfTheWorkStopsEveryRankAndIsReported) {
  const Case made = lowered("1f1b", 4, 8);
  const exec::Work work = [&](const exec::WorkItem& item) -> Nanos {
    if (to_string(made.program.instructions[item.id].op) == "2F3")
      throw std::runtime_error("no memory for 2F3");
    return item.clock.now();
  };
  const exec::Execution execution = run(made.program, {work, {}});
  ASSERT_TRUE(execution.breakdown);
  EXPECT_EQ(execution.breakdown->message.find("no memory for 2F3; every rank was stopped: rank 2"),
            0u)
      << execution.breakdown->message;
  // On a busy machine the rank may not have reached 3F3 yet, where it would wait for 2F3.
  EXPECT_NE(execution.breakdown->message.find("rank 3 at 3"), std::string::npos)
      << execution.breakdown->message;
  ASSERT_EQ(execution.steps.size(), 1u);
}

/// A backend whose rank 1 is gone when all others are done.
class LonelyBackend : public exec::Backend {
 public:
  std::vector<exec::RankResult> run_step() override {
    std::vector<exec::RankResult> results(2);
    for (exec::RankResult& result : results) result.reason = exec::AbortReason::kTimeout;
    results[1].failure = std::make_exception_ptr(std::runtime_error("rank 1 is gone"));
    return results;
  }
};

TEST(Execute, WhereTheOthersWereDoneSaysSo) {
  const Case made = lowered("1f1b", 2, 4);
  LonelyBackend backend;
  const exec::Execution execution = exec::execute(made.program, backend, "lonely", {});
  ASSERT_TRUE(execution.breakdown);
  EXPECT_EQ(execution.breakdown->message, "rank 1 is gone; all other ranks had finished the step");
}

TEST(Execute, AHangIsStoppedByTheTimeoutAndTheCulpritNamed) {
  const Case made = lowered("1f1b", 3, 6);
  exec::BackendRequest request{no_work(), {parse_injection("rank=1,op=1B0,hang")}};
  request.limits.timeout = 60 * kMillisecond;
  const exec::Execution execution = run(made.program, std::move(request));
  ASSERT_TRUE(execution.breakdown);
  EXPECT_EQ(execution.breakdown->fault, Fault::kMachine);
  EXPECT_EQ(
      execution.breakdown->message.find("no progress within `timeout`: rank 1 at 1B0 (running); "),
      0u)
      << execution.breakdown->message;
  EXPECT_NE(execution.breakdown->message.find("rank 0 at 0B0 waits for 1B0 of rank 1"),
            std::string::npos)
      << execution.breakdown->message;
  const Timeline& partial = execution.steps.back();
  EXPECT_EQ(partial.start.size(), made.program.size());
}

TEST(Execute, AnInterruptStopsEveryRank) {
  const Case made = lowered("gpipe", 2, 2);
  const std::atomic<bool> interrupted = true;
  exec::BackendRequest request{no_work(), {parse_injection("rank=0,op=0F1,hang")}};
  request.limits.interrupted = &interrupted;
  const exec::Execution execution = run(made.program, std::move(request));
  ASSERT_TRUE(execution.breakdown);
  EXPECT_EQ(execution.breakdown->message.find("interrupted: rank 0 at 0F1"), 0u);
}

TEST(Execute, ADelayLengthensTheOpByAsMuch) {
  const Case made = lowered("gpipe", 2, 2);
  const exec::Execution execution =
      run(made.program, {no_work(), {parse_injection("rank=1,op=1F1,delay=30ms")}});
  ASSERT_FALSE(execution.breakdown);
  for (InstructionId id = 0; id < made.program.size(); ++id)
    if (to_string(made.program.instructions[id].op) == "1F1") {
      EXPECT_GE(execution.steps[0].end[id] - execution.steps[0].start[id], 30 * kMillisecond);
    }
}

TEST(Execute, ABackendContinuesAfterOneExecution) {
  const Case made = lowered("gpipe", 3, 2);
  const auto backend = exec::find_backend("cpu").make({no_work(), {}}, made.program);
  for (int execution = 0; execution < 2; ++execution)
    EXPECT_FALSE(exec::execute(made.program, *backend, "cpu", {1, 2, {}}).breakdown);
}

TEST(Execute, TheMedianStepIsTheMiddleOneByLength) {
  const std::vector<Timeline> steps{{"a", {0}, {9}}, {"b", {1}, {4}}, {"c", {0}, {5}}};
  EXPECT_EQ(exec::median_step(steps).source, "c");
  // As in all reports, the lower of the middle two.
  EXPECT_EQ(exec::median_step({steps[0], steps[1]}).source, "b");
}

}  // namespace
}  // namespace bubblescope::tests
