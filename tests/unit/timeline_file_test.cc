// Native timeline files and the csv of a timeline.
#include "traces/timelines/timeline_file.h"

#include <gtest/gtest.h>

#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "tests/support/malformed.h"
#include "tests/support/random_schedule.h"
#include "traces/files/format.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

traces::TimelineFile read(const std::string& text) {
  return traces::parse_timeline(text, "f.json");
}

traces::TimelineFile time(const Schedule& schedule, Overlap overlap = Overlap::kAtomic) {
  traces::TimelineFile step{require_valid(schedule)};
  step.program = std::get<Program>(lower(schedule, {overlap}));
  UniformCost cost;
  cost.message = 100'000;
  step.timeline = simulate(step.program, spread(cost, schedule));
  return step;
}

std::string write(const traces::TimelineFile& step) {
  return traces::write_timeline(step.schedule, step.program, step.timeline);
}

std::string write_as(const std::string& format, const traces::TimelineFile& step) {
  const BubbleReport report = analyze(step.schedule, step.program, step.timeline);
  const traces::StepRecord record{step.schedule, step.program, step.timeline, report};
  return Registry<traces::TimelineFormat>::instance().find(format)->write(record, "file");
}

TEST(TimelineFile, IsWrittenAsDocumented) {
  const traces::TimelineFile step = time(traces::parse_schedule_text("0F0 | 1F0"));
  EXPECT_EQ(write_as("save", step), write(step));
  EXPECT_EQ(
      write(step),
      "{\"format\":\"bubblescope-timeline/1\",\n"
      " \"source\":\"simulated\",\n"
      " \"schedule\":{\"format\":\"bubblescope-schedule/1\",\n"
      " \"name\":\"text\",\n"
      " \"shape\":{\"ranks\":2,\"chunks\":1,\"microbatches\":1,\"slices\":1},\n"
      " \"pipelines\":1,\n"
      " \"forward_only\":true,\n"
      " \"placement\":[0,1],\n"
      " \"order\":[\"0F0\",\n"
      "  \"1F0\"]},\n"
      " \"lanes\":[[0,\"compute\"],[1,\"compute\"]],\n"
      " \"columns\":[\"rank\",\"op\",\"start_ns\",\"end_ns\",\"lane\",\"peer\",\"waits_for\"],\n"
      " \"instructions\":[\n"
      " [0,\"0F0\",0,1000000,0,0,[]],\n"
      " [0,\"0SEND_F0\",1000000,1100000,null,1,[0]],\n"
      " [1,\"1F0\",1100000,2100000,1,1,[1]]]}\n");
}

TEST(TimelineFile, RoundTripsRandomSchedulesInEveryOverlapMode) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    RandomTraits traits;
    traits.slices = seed % 2 == 1;
    traits.recompute = seed % 5 == 0;
    const auto overlap = static_cast<Overlap>(seed % 3);
    const Schedule schedule = random_schedule(seed, traits);
    if (std::holds_alternative<Deadlock>(lower(schedule, {overlap}))) continue;
    const traces::TimelineFile step = time(schedule, overlap);
    const traces::TimelineFile again = read(write(step));
    ASSERT_TRUE(again.schedule.get() == step.schedule.get()) << "seed " << seed;
    ASSERT_EQ(write(again), write(step)) << "seed " << seed;
    ASSERT_EQ(simulate(again.program, spread({}, schedule)).end,
              simulate(step.program, spread({}, schedule)).end)
        << "seed " << seed;
  }
}

// With gaps of 5 between ops, an op that is ready has slack only beyond its gap.
TEST(TimelineFile, KeepsGapsAndTheSlackThatFollowsFromThem) {
  traces::TimelineFile step{require_valid(traces::parse_schedule_text("0F0 0F1 | 1F0 1F1"))};
  step.program = std::get<Program>(lower(step.schedule));
  CostModel costs = spread({}, step.schedule);
  costs.op_gap = 5;
  step.timeline = simulate(step.program, costs);
  const traces::TimelineFile again = read(write(step));
  EXPECT_EQ(again.timeline.gaps, step.timeline.gaps);
  EXPECT_EQ(write(again), write(step));
  EXPECT_EQ(analyze(again.schedule, again.program, again.timeline).slack,
            analyze(step.schedule, step.program, step.timeline).slack);
}

TEST(TimelineFile, IsRecognized) {
  EXPECT_TRUE(traces::is_timeline(write(time(traces::parse_schedule_text("0F0")))));
  EXPECT_FALSE(traces::is_timeline("0F0"));
}

TEST(TimelineFile, RefusesWhatIsMalformed) { expect_refusals("timeline.txt", read); }

TEST(TimelineFile, RefusesALaneWhoseOpsTakeLongerThanTheStep) {
  traces::TimelineFile step = time(traces::parse_schedule_text("0F0 0B0"));
  step.timeline.start[1] = 0;  // overlaps the forward, which is half as long
  EXPECT_EQ(error_of([&] { read(write(step)); }),
            "f.json: /instructions: the ops of lane 0 take longer than the whole step, 3 ms; "
            "they overlap");
}

TEST(TimelineFile, SurvivesDamage) {
  expect_survival(write(time(traces::parse_schedule_text("0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1"))),
                  read);
}

// 0.1 ms of latency: rank 1 starts at 1.1 ms. Both forwards and the message are the longest chain.
TEST(TimelineCsv, HasOneRowPerInstruction) {
  EXPECT_EQ(write_as("timeline", time(traces::parse_schedule_text("0F0 | 1F0"))),
            "rank,lane,op,kind,stage,microbatch,start_ns,end_ns,slack_ns,critical,rank_rows\n"
            "0,compute,0F0,F,0,0,0,1000000,0,1,2\n"
            "0,,0SEND_F0,SEND_F,0,0,1000000,1100000,0,1,2\n"
            "1,compute,1F0,F,1,0,1100000,2100000,0,1,1\n");
}

}  // namespace
}  // namespace bubblescope::tests
