// The report of a step that can be checked by hand.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>

#include "sim/analysis/analyze.h"
#include "sim/analysis/idle.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "tests/support/as_written.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

struct Analyzed {
  Program program;
  BubbleReport report;
};

Analyzed analyze_text(const char* text, Nanos message, const std::vector<Nanos>& stage_factor = {},
                      const MemoryModel& memory = {}) {
  const Schedule schedule = traces::parse_schedule_text(text);
  UniformCost cost;
  cost.forward = cost.input_grad = cost.weight_grad = 10;
  cost.message = message;
  cost.per = UniformCost::Per::kChunk;
  CostModel model = spread(cost, schedule);
  for (std::size_t stage = 0; stage < stage_factor.size(); ++stage) {
    model.stages[stage].forward *= stage_factor[stage];
    model.stages[stage].backward *= stage_factor[stage];
  }
  Analyzed analyzed{std::get<Program>(lower(schedule)), {}};
  analyzed.report = analyze(schedule, analyzed.program, simulate(analyzed.program, model), memory);
  return analyzed;
}

Nanos cause(const RankReport& rank, IdleCause which) {
  return rank.idle_by_cause[static_cast<std::size_t>(which)];
}

// 1F1B, p=2, m=2, f=10, b=20, no latency. Rank 0: F0 0-10, F1 10-20, waits for 1B0 (20-40),
// B0 40-60, 1F1 40-50, 1B1 50-70, B1 70-90.
constexpr const char* kTwoRanks = "0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1";

TEST(Analyze, AccountsForEveryNanosecond) {
  const BubbleReport report = analyze_text(kTwoRanks, 0).report;
  EXPECT_EQ(report.makespan, 90);
  EXPECT_EQ(report.ideal, 60);
  EXPECT_EQ(report.max_span, 90);
  EXPECT_EQ(report.bubble->time, 30);
  EXPECT_DOUBLE_EQ(report.bubble->ratio, 60.0 / 180);
  EXPECT_DOUBLE_EQ(report.bubble->overhead, 0.5);
  EXPECT_EQ(cause(report.ranks[0], IdleCause::kDependency), 20 + 10);
  EXPECT_EQ(cause(report.ranks[1], IdleCause::kWarmup), 10);
  EXPECT_EQ(cause(report.ranks[1], IdleCause::kDrain), 20);
  for (const RankReport& rank : report.ranks) {
    EXPECT_EQ(rank.busy + rank.idle, report.makespan);
    EXPECT_EQ(std::accumulate(rank.idle_by_cause.begin(), rank.idle_by_cause.end(), Nanos{0}),
              rank.idle);
    EXPECT_EQ(std::accumulate(rank.busy_by_kind.begin(), rank.busy_by_kind.end(), Nanos{0}),
              rank.busy);
  }
}

TEST(Analyze, SeparatesTransitFromWaiting) {
  // With 5 of latency rank 0 waits for 1B0 from 20 to 45 and for its message from 45 to 50.
  const BubbleReport report = analyze_text(kTwoRanks, 5).report;
  EXPECT_EQ(cause(report.ranks[0], IdleCause::kCommunication), 5 + 5);
  EXPECT_EQ(report.ranks[0].sends, 2);
}

TEST(Analyze, CountsUnequalWorkAsImbalance) {
  // Stage 1 takes three times as long: rank 0 has 2*60 less work and waits for it.
  const BubbleReport report = analyze_text(kTwoRanks, 0, {1, 3}).report;
  EXPECT_EQ(report.ranks[1].busy - report.ranks[0].busy, 120);
  EXPECT_EQ(cause(report.ranks[0], IdleCause::kImbalance), 120);
}

TEST(Analyze, CriticalPathIsUnbrokenAndAsLongAsTheStep) {
  const Analyzed analyzed = analyze_text(kTwoRanks, 5);
  const Schedule schedule = traces::parse_schedule_text(kTwoRanks);
  std::string path;
  for (const InstructionId id : analyzed.report.critical_path) {
    path += to_string(analyzed.program.instructions[id].op) + " ";
    EXPECT_EQ(analyzed.report.slack[id], 0);
  }
  EXPECT_EQ(path, "0F0 0SEND_F0 1F0 1B0 1F1 1B1 1SEND_B1 0B1 ");
}

TEST(Analyze, SlackSaysHowMuchLaterAnOpCouldEnd) {
  const Analyzed analyzed = analyze_text(kTwoRanks, 0);
  std::map<std::string, Nanos> slack;
  for (InstructionId id = 0; id < analyzed.program.size(); ++id)
    slack[to_string(analyzed.program.instructions[id].op)] = analyzed.report.slack[id];
  EXPECT_EQ(slack["0F1"], 20);  // 1F1 starts at 40, 0F1 ends at 20
  EXPECT_EQ(slack["0B0"], 10);  // 0B1 starts at 70
}

TEST(Analyze, PeaksFollowTheReleaseRule) {
  const char* split = "0F0 0F1 0I0 0I1 0W0 0W1 | 1F0 1I0 1F1 1I1 1W0 1W1";
  const auto peaks = [&](Release release) {
    MemoryModel memory;
    memory.release = release;
    const BubbleReport report = analyze_text(split, 0, {}, memory).report;
    return std::pair(report.ranks[0].peak.chunks, report.ranks[1].peak.chunks);
  };
  EXPECT_EQ(peaks(Release::kWeightGrad), std::pair(2.0, 2.0));
  EXPECT_EQ(peaks(Release::kInputGrad), std::pair(2.0, 1.0));
  EXPECT_EQ(peaks(Release::kHalf), std::pair(2.0, 1.5));
}

TEST(Analyze, CountsMemoryInTheUsersUnitAndInBytes) {
  MemoryModel memory;
  memory.unit = {30'000'000, -10'000'000, -20'000'000};
  memory.activation_bytes = {{1000, 0, -1000}, {500, 0, -500}};
  memory.static_bytes = {7, 9};
  const BubbleReport report = analyze_text(kTwoRanks, 0, {}, memory).report;
  EXPECT_DOUBLE_EQ(report.ranks[0].peak.units, 60);
  EXPECT_EQ(report.ranks[0].peak.bytes, 2000 + 7);
  EXPECT_EQ(report.ranks[1].peak.bytes, 500 + 9);
}

TEST(LowerBound, IsReachedByAPerfectSchedule) {
  // p=2, m=1: nothing can overlap; 10 + 10 + 20 + 20.
  const BubbleReport report = analyze_text("0F0 0B0 | 1F0 1B0", 0).report;
  EXPECT_EQ(report.lower_bound, 60);
  EXPECT_EQ(report.makespan, 60);
}

TEST(LowerBound, CountsHeadWorkAndTail) {
  // Rank 1 cannot start before 10, works 60, and 20 of rank 0 follow its last backward.
  EXPECT_EQ(analyze_text(kTwoRanks, 0).report.lower_bound, 90);
}

}  // namespace
}  // namespace bubblescope::tests
