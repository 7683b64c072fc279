// The assignment of ranks to devices and of lanes to streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <variant>

#include "exec/gpu/host/place_ranks.h"
#include "exec/gpu/host/stream_plan.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

std::int32_t size_of_each(std::int32_t multiprocessors, std::int32_t ranks) {
  const auto places = exec::place_ranks({{multiprocessors, 90}}, ranks, exec::Share::kGreen);
  std::set<std::int32_t> parts;
  for (const exec::RankPlace& place : places) {
    EXPECT_EQ(place.multiprocessors, places[0].multiprocessors);
    parts.insert(place.partition);
  }
  EXPECT_EQ(parts.size(), places.size());
  return places[0].multiprocessors;
}

TEST(PlaceRanks, PartitionsAreMultiplesOfEight) {
  // The largest multiple of 8 that fits into 132 as many times as there are ranks.
  EXPECT_EQ(size_of_each(132, 2), 64);
  EXPECT_EQ(size_of_each(132, 3), 40);
  EXPECT_EQ(size_of_each(132, 4), 32);
  EXPECT_EQ(size_of_each(132, 8), 16);
  EXPECT_EQ(size_of_each(132, 16), 8);
  EXPECT_EQ(size_of_each(114, 4), 24);
  EXPECT_EQ(error_of([&] {
              exec::place_ranks({{132, 90}}, 17, exec::Share::kGreen);
            }),
            "a device of 132 multiprocessors has at most 16 partitions, not 17; use fewer ranks, "
            "or `share` streams");
  EXPECT_EQ(exec::partition_grain(80), 4);
  EXPECT_EQ(exec::partition_grain(70), 2);
  EXPECT_EQ(exec::partition_grain(100), 8);
}

TEST(PlaceRanks, ARankAloneHasItsDeviceWhole) {
  const auto alone = exec::place_ranks({{132, 90}}, 1, exec::Share::kGreen);
  EXPECT_EQ(alone, (std::vector<exec::RankPlace>{{0, 132, 0, false}}));
  const auto two = exec::place_ranks({{132, 90}, {114, 90}, {132, 90}}, 2, exec::Share::kGreen);
  EXPECT_EQ(two, (std::vector<exec::RankPlace>{{0, 132, 0, false}, {1, 114, 0, false}}));
}

TEST(PlaceRanks, NeighboursShareADeviceWhereThereAreFewer) {
  const auto places = exec::place_ranks({{132, 90}, {132, 90}}, 4, exec::Share::kGreen);
  EXPECT_EQ(places, (std::vector<exec::RankPlace>{
                        {0, 64, 0, true}, {0, 64, 1, true}, {1, 64, 0, true}, {1, 64, 1, true}}));
  // Three ranks on two devices: two share the first, and the third has the second to itself.
  const auto three = exec::place_ranks({{132, 90}, {132, 90}}, 3, exec::Share::kGreen);
  EXPECT_EQ(three,
            (std::vector<exec::RankPlace>{{0, 64, 0, true}, {0, 64, 1, true}, {1, 132, 0, false}}));
}

TEST(PlaceRanks, StreamsCompeteForAllMultiprocessors) {
  for (const exec::RankPlace& place : exec::place_ranks({{132, 90}}, 20, exec::Share::kStreams)) {
    EXPECT_FALSE(place.has_partition);
    EXPECT_EQ(place.multiprocessors, 132);
  }
  EXPECT_EQ(error_of([&] { exec::place_ranks({}, 1, exec::Share::kStreams); }),
            "this machine has no CUDA device; use `backend` cpu");
}

Program lowered(const std::string& name, std::int32_t ranks, std::int32_t microbatches) {
  return std::get<Program>(
      lower(build_schedule(find_schedule(name), {{ranks, 1, microbatches, 1, {}}, {}, {}})));
}

TEST(PlanStreams, ThereIsOnePerLaneAndOnePerDirectedLink) {
  // 1F1B on four ranks has four compute lanes, three links down and three up.
  const exec::StreamPlan plan = exec::plan_streams(lowered("1f1b", 4, 8));
  std::set<std::string> links;
  for (const exec::PlannedStream& stream : plan.streams)
    if (!stream.computes) links.insert(stream.name);
  EXPECT_EQ(plan.streams.size(), 10u);
  EXPECT_EQ(links, (std::set<std::string>{"0>1", "1>2", "2>3", "1>0", "2>1", "3>2"}));
}

TEST(PlanStreams, AnInstructionWaitsOncePerOtherStreamForTheLastOfIt) {
  for (const char* name : {"1f1b", "zb-v", "dualpipe", "interleaved-zb"}) {
    const Program program = lowered(name, 4, 8);
    const exec::StreamPlan plan = exec::plan_streams(program);
    for (InstructionId id = 0; id < program.size(); ++id) {
      std::map<std::uint32_t, std::uint32_t> last;
      for (const InstructionId dependency : program.dependencies_of(id))
        if (plan.stream_of[dependency] != plan.stream_of[id])
          last[plan.stream_of[dependency]] =
              std::max(last[plan.stream_of[dependency]], plan.place[dependency]);
      ASSERT_EQ(plan.waits_of(id).size(), last.size()) << name;
      for (const InstructionId awaited : plan.waits_of(id)) {
        EXPECT_EQ(plan.place[awaited], last[plan.stream_of[awaited]]);
        EXPECT_LT(plan.place[awaited], plan.place[id]);
      }
    }
  }
}

// In gpipe the last rank runs 64 backwards one after another. A stream takes about a thousand
// commands, and an op has dozens: a host that enqueued rank by rank would stop at the last rank's
// stream before any other rank has a backward to run.
TEST(PlanStreams, NoRankIsEnqueuedFarAheadOfTheOthers) {
  for (const char* name : {"gpipe", "1f1b", "bfs", "zb-h2", "zb-v", "dualpipev"}) {
    const Program program = lowered(name, 4, 64);
    const exec::StreamPlan plan = exec::plan_streams(program);
    std::vector<Nanos> durations;
    for (const Instruction& instruction : program.instructions)
      durations.push_back(is_compute(instruction.op.kind) ? 100 : 1);
    const Timeline timeline = simulate(program, durations);
    Nanos latest = 0;
    Nanos lag = 0;  // of what is enqueued after what starts later
    for (const InstructionId id : plan.order) {
      latest = std::max(latest, timeline.start[id]);
      lag = std::max(lag, latest - timeline.start[id]);
    }
    EXPECT_LE(lag, 16 * 100) << name;  // in ops of a rank, which has 128 or more
  }
}

TEST(PlanStreams, EightRanksNeedNoMoreQueuesThanTheDriverHas) {
  for (const char* name : {"1f1b", "gpipe", "interleaved", "zb-h2", "zb-v", "dualpipev", "v-half"})
    EXPECT_LE(exec::plan_streams(lowered(name, 8, 16)).streams.size() + 3, exec::kMaxQueues)
        << name;
}

}  // namespace
}  // namespace bubblescope::tests
