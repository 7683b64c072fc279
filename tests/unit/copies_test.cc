// Copies of activations: their dependencies, their dependents, and the memory that they use.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "sim/analysis/analyze.h"
#include "sim/analysis/memory_curve.h"
#include "sim/engine/simulate.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/ir/offload.h"
#include "sim/ir/recompute.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "tests/support/measured_schedule.h"
#include "tests/support/recorded_step.h"
#include "traces/drawings/drawing.h"
#include "traces/schedules/native_schedule.h"
#include "traces/schedules/text_schedule.h"
#include "traces/timelines/timeline_file.h"

namespace bubblescope::tests {
namespace {

/// F 10, B 20, copies of the given duration.
UniformCost cost_of(Nanos copy) {
  UniformCost cost;
  cost.forward = cost.input_grad = cost.weight_grad = 10;
  cost.copy = copy;
  return cost;
}

struct Timed {
  Schedule schedule;
  Program program;
  Timeline timeline;
  std::map<std::string, Nanos> start;
  std::map<std::string, InstructionId> id;

  BubbleReport report() const { return analyze(schedule, program, timeline); }
};

Timed time(const Schedule& schedule, Nanos copy, const LowerOptions& options = {}) {
  Timed timed{schedule, std::get<Program>(lower(schedule, options)), {}, {}, {}};
  timed.timeline = simulate(timed.program, spread(cost_of(copy), schedule));
  for (InstructionId id = 0; id < timed.program.size(); ++id) {
    const std::string op = to_string(timed.program.instructions[id].op);
    timed.start[op] = timed.timeline.start[id];
    timed.id[op] = id;
  }
  return timed;
}

constexpr const char* kOneRank = "0F0 0F1 0EVICT0 0F2 0B2 0LOAD0 0B1 0B0";

TEST(Copies, RunBesideOpsThatDoNotNeedTheirMemory) {
  const Timed timed = time(traces::parse_schedule_text(kOneRank), 15);
  EXPECT_EQ(timed.start.at("0EVICT0"), 10);  // the end of 0F0
  EXPECT_EQ(timed.start.at("0F1"), 10);
  EXPECT_EQ(timed.start.at("0F2"), 25);     // not 20: its memory is free at 25
  EXPECT_EQ(timed.start.at("0LOAD0"), 55);  // the end of 0B2, not earlier
  EXPECT_EQ(timed.start.at("0B0"), 75);     // 0B1 ends at 75, the load at 70
  const BubbleReport report = timed.report();
  EXPECT_EQ(report.ranks[0].idle_by_cause[static_cast<std::size_t>(IdleCause::kMemory)], 5);
  EXPECT_EQ(report.ranks[0].idle, 5);
}

TEST(Copies, BlockTheOpThatNeedsThem) {
  const Timed timed = time(traces::parse_schedule_text(kOneRank), 25);
  EXPECT_EQ(timed.start.at("0F2"), 35);  // 10 + 25
  EXPECT_EQ(timed.start.at("0B0"), 90);  // 0B2 ends at 65, the load at 90
}

TEST(Copies, DoNotCountTheHostsMemory) {
  const Timed timed = time(traces::parse_schedule_text(kOneRank), 15);
  // 0F0 0F1, then 0F2 for the evicted 0F0; the load allocates when 0B2 has released.
  EXPECT_EQ(timed.report().ranks[0].peak.chunks, 2);
  const auto curve = compute_memory_curve(timed.schedule, timed.program, timed.timeline, {});
  EXPECT_EQ(curve.back().held.chunk_millionths, 0);
  EXPECT_EQ(curve.size(), 8u);
}

/// Rank 1 holds what rank 0 evicts, from the start of the copy to the end of the load.
TEST(Copies, TakeTheOffloadTargetsMemory) {
  Schedule schedule = traces::parse_schedule_text(
      "0F0 0F1 0EVICT0 0F2 0B2 0LOAD0 0B1 0B0 | 1F0 1F1 1F2 "
      "1B2 1B1 1B0");
  schedule.offload_target_of_rank = {1, 1};
  ASSERT_TRUE(validate(schedule).empty());
  const Timed timed = time(schedule, 15);
  const auto curve = compute_memory_curve(schedule, timed.program, timed.timeline, {});
  std::int64_t highest = 0;
  Nanos last_taken = 0;
  for (const MemoryPoint& point : curve)
    if (point.rank == 1) {
      highest = std::max(highest, point.held.chunk_millionths);
      if (point.by == timed.id.at("0LOAD0")) last_taken = point.time;
    }
  EXPECT_EQ(highest, 4 * kWhole);  // three of its own and one of rank 0
  EXPECT_EQ(last_taken, timed.timeline.end[timed.id.at("0LOAD0")]);
}

TEST(Copies, OfACheckpointTakeOnlyItsMemory) {
  Schedule schedule = with_recompute(traces::parse_schedule_text(kOneRank), {Recompute::kFull});
  EXPECT_EQ(order_text(schedule.order[0]), "0F0 0F1 0EVICT0 0F2 0R2 0B2 0LOAD0 0R1 0B1 0R0 0B0");
  MemoryModel memory;
  memory.saved.full = kWhole / 4;
  const Timed timed = time(schedule, 5);
  const std::vector<Peak> peaks = find_peaks(schedule, timed.program, timed.timeline, memory);
  // At 0R2: the checkpoint of 0F1 and all of 0F2. At 0R1: the checkpoint of 0F0 is back, and all of
  // 0F1.
  EXPECT_DOUBLE_EQ(peaks[0].chunks, 1.25);
}

TEST(Copies, WaitForTheForwardAndTheRecomputationForThem) {
  const Schedule schedule = with_recompute(
      traces::parse_schedule_text("0F0 0F1 0EVICT0 0B1 0LOAD0 0B0"), {Recompute::kFull});
  const Timed timed = time(schedule, 30);
  EXPECT_EQ(timed.start.at("0R1"), 40);     // 0EVICT0 ends at 10 + 30
  EXPECT_EQ(timed.start.at("0LOAD0"), 70);  // 0B1 ends at 40 + 10 + 20
  EXPECT_EQ(timed.start.at("0R0"), 100);
}

TEST(Copies, OfNeighboursTakeTurnsOnASharedLink) {
  // Rank 0 could evict from 10 on, rank 1 from 20 on; a copy takes 25.
  LowerOptions shared;
  shared.ranks_per_host_link = 2;
  const Schedule two = traces::parse_schedule_text(
      "0F0 0F1 0EVICT0 0B1 0LOAD0 0B0 | 1F0 1F1 1EVICT0 1B1 1LOAD0 "
      "1B0");
  const Timed alone = time(two, 25);
  const Timed timed = time(two, 25, shared);
  EXPECT_EQ(alone.start.at("0EVICT0"), 10);
  EXPECT_EQ(alone.start.at("1EVICT0"), 20);
  EXPECT_EQ(timed.start.at("0EVICT0"), 10);
  EXPECT_EQ(timed.start.at("1EVICT0"), 35);
}

struct Broken {
  const char* text;
  const char* says;
};

TEST(Copies, AreValidated) {
  const Broken cases[] = {
      {"0F0 0F1 0EVICT0 0B1 0B0", "0EVICT0 is never loaded back; add 0LOAD0"},
      {"0F0 0F1 0LOAD0 0B1 0B0", "0LOAD0 loads what was never evicted"},
      {"0EVICT0 0F0 0F1 0B1 0LOAD0 0B0", "0EVICT0 runs before its forward"},
      {"0F0 0LOAD0 0F1 0EVICT0 0B1 0B0", "0LOAD0 runs before 0EVICT0"},
      {"0F0 0F1 0EVICT0 0B1 0B0 0LOAD0", "0LOAD0 runs after 0B0, which needs it"},
      {"0F0 0F1 0EVICT0 0B1 0R0 0LOAD0 0B0", "0LOAD0 runs after 0R0, which needs it"},
      {"0F0 0F1 0EVICT0 0EVICT0 0B1 0LOAD0 0B0", "0EVICT0 runs twice"},
  };
  for (const Broken& broken : cases) {
    const Problems problems = validate(traces::parse_schedule_text(broken.text));
    ASSERT_FALSE(problems.empty()) << broken.text;
    EXPECT_NE(to_string(problems[0]).find(broken.says), std::string::npos)
        << to_string(problems[0]);
  }
  Schedule schedule = traces::parse_schedule_text(kOneRank);
  EXPECT_TRUE(validate(schedule).empty());
  schedule.offload_target_of_rank = {1};
  EXPECT_NE(to_string(validate(schedule)[0]).find("evicts to rank 1; ranks are 0..0"),
            std::string::npos);
  schedule.offload_target_of_rank.clear();
  EXPECT_NE(to_string(validate(schedule)[0]).find("no offload target"), std::string::npos);
  EXPECT_EQ(error_of([&] { lower(schedule); }),
            "text is not legal: 2 problems, the first: 0EVICT0 has no offload target; name the "
            "rank (or host) that stores what each rank evicts");
}

ScheduleRequest make_request(std::int32_t ranks, std::int32_t chunks, std::int32_t microbatches) {
  ScheduleRequest request;
  request.shape.ranks = ranks;
  request.shape.chunks = chunks;
  request.shape.microbatches = microbatches;
  return request;
}

TEST(Copies, SurviveEveryFileOfOurs) {
  for (const char* name : {"bpipe", "group-interleaved"}) {
    Schedule schedule = build_schedule(find_schedule(name), make_request(6, 1, 12));
    if (schedule.offload_target_of_rank.empty()) schedule = with_offload(schedule, {});
    EXPECT_TRUE(traces::read_native_schedule(traces::write_native_schedule(schedule), "f.json") ==
                schedule);
    const RecordedStep step = record_step(schedule, cost_of(7));
    const traces::TimelineFile file = traces::parse_timeline(
        traces::write_timeline(require_valid(schedule), step.program, step.timeline), "f.json");
    EXPECT_TRUE(file.schedule == schedule);
    EXPECT_EQ(file.program.size(), step.program.size());
    EXPECT_EQ(file.timeline.end, step.timeline.end);
    EXPECT_NE(write_as("trace", step).find("\"cat\":\"evict\""), std::string::npos);
    EXPECT_NE(write_as("timeline", step).find(",LOAD,"), std::string::npos);
    EXPECT_EQ(error_of([&] { traces::parse_schedule_text("0F0 0EVICT0x 0LOAD0 0B0"); }),
              "text: rank 0, position 1: '0EVICT0x' continues with 'x' after 0EVICT0; remove that");
  }
  const Schedule host = traces::parse_schedule_text(kOneRank);
  EXPECT_EQ(order_text(traces::parse_schedule_text(order_text(host.order[0])).order[0]), kOneRank);
}

TEST(Copies, AreDrawnBelowTheirRank) {
  const RecordedStep step = record_step(traces::parse_schedule_text(kOneRank), cost_of(15));
  const std::string drawing = traces::draw_timeline(step.record(), {});
  EXPECT_NE(drawing.find("\n evict "), std::string::npos) << drawing;
  EXPECT_NE(drawing.find("\n load "), std::string::npos) << drawing;
  EXPECT_NE(drawing.find("E evict  L load"), std::string::npos) << drawing;
  const std::string figure = write_as("svg", step);
  EXPECT_NE(figure.find("class=\"cell E0\""), std::string::npos);
  EXPECT_NE(figure.find("class=\"cell L0\""), std::string::npos);
  EXPECT_NE(write_as("dot", step).find("0EVICT0"), std::string::npos);
}

TEST(Offload, SkipsForwardsThatAreNeededSoon) {
  const Schedule schedule =
      with_offload(build_schedule(find_schedule("1f1b"), make_request(4, 1, 6)), {});
  EXPECT_TRUE(validate(schedule).empty());
  // On the last rank every forward is followed by its backward.
  EXPECT_EQ(order_text(schedule.order[3]), "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5");
  EXPECT_EQ(order_text(schedule.order[0]),
            "0F0 0F1 0EVICT0 0F2 0EVICT1 0LOAD0 0F3 0EVICT2 0B0 0EVICT3 0LOAD1 0F4 0B1 0EVICT4 "
            "0LOAD2 0F5 0LOAD3 0B2 0EVICT5 0LOAD4 0B3 0LOAD5 0B4 0B5");
}

TEST(Offload, EvictsTheGivenFraction) {
  const Schedule plain = build_schedule(find_schedule("gpipe"), make_request(1, 1, 10));
  const auto evictions = [&](std::int64_t share) {
    const Schedule schedule = with_offload(plain, {share, 1});
    return std::count_if(schedule.order[0].begin(), schedule.order[0].end(),
                         [](const Op& op) { return op.kind == OpKind::kEvict; });
  };
  EXPECT_EQ(evictions(0), 0);
  EXPECT_EQ(evictions(300'000), 3);
  EXPECT_EQ(evictions(1'000'000), 10);
}

/// The most forwards that rank 0 holds at once, where copies take no time.
double highest_peak(const Schedule& schedule) {
  return time(schedule, 0).report().ranks[0].peak.chunks;
}

// Rank 0 of 1F1B holds 4, and one that is away is so during two forwards: half of them lower the
// peak. Those that wait longest are neighbours, and left the peak as it was.
TEST(Offload, LowersThePeakWhereTheShareIsEnough) {
  const Schedule plain = build_schedule(find_schedule("1f1b"), make_request(4, 1, 16));
  EXPECT_EQ(highest_peak(plain), 4);
  const auto offloaded = [&](std::int64_t share) {
    return with_offload(build_schedule(find_schedule("1f1b"), make_request(4, 1, 16)), {share, 1});
  };
  EXPECT_EQ(highest_peak(offloaded(250'000)), 4);
  EXPECT_EQ(highest_peak(offloaded(500'000)), 3);
  EXPECT_EQ(highest_peak(offloaded(750'000)), 3);
  EXPECT_FALSE(lowers_peak(offloaded(250'000)));
  EXPECT_TRUE(lowers_peak(offloaded(500'000)));
}

TEST(Offload, RefusesSchedulesThatEvictAlreadyOrSaveNothing) {
  Schedule joint = build_schedule(find_schedule("gpipe"), make_request(2, 1, 4));
  joint.fused_forwards = 2;
  EXPECT_EQ(error_of([&] { with_offload(joint, {}); }),
            "gpipe fuses forwards, between which copies cannot be placed; leave `offload` out, "
            "or unfuse them");
  EXPECT_EQ(error_of([&] {
              with_offload(build_schedule(find_schedule("bpipe"), make_request(4, 1, 4)), {});
            }),
            "bpipe evicts already; leave `offload` out");
  EXPECT_EQ(error_of([&] {
              with_offload(build_schedule(find_schedule("forward-only"), make_request(4, 1, 4)),
                           {});
            }),
            "forward-only runs forward only and saves no activations; leave `offload` out");
  EXPECT_EQ(error_of([&] {
              with_offload(
                  traces::parse_schedule_text("0F0 0SEND_F0 0RECV_B0 0B0 | 1RECV_F0 1F0 1B0 "
                                              "1SEND_B0"),
                  {});
            }),
            "text posts its messages, between which copies cannot be placed; leave `offload` "
            "out, or the messages");
}

}  // namespace
}  // namespace bubblescope::tests
