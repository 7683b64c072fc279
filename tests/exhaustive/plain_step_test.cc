// Compares the one walk over a plain step's orders with the whole way: validated, lowered,
// simulated and analyzed.
#include "sim/analysis/plain_step.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "sim/model/schedule_def.h"
#include "tests/support/random_schedule.h"
#include "tests/support/small_schedules.h"

namespace bubblescope::tests {
namespace {

constexpr std::uint32_t kSeed = 20'261'127;

/// Costs and memory in which ties and zeros are common.
struct Draw {
  CostModel costs;
  MemoryModel memory;
};

Draw draw_costs(Random& random, const Schedule& schedule) {
  UniformCost cost;
  for (Nanos* each : {&cost.forward, &cost.input_grad, &cost.weight_grad, &cost.message})
    *each = draw(random, 0, 1) == 0 ? draw(random, 0, 3) : draw(random, 0, 100);
  if (draw(random, 0, 3) == 0) cost.backward = draw(random, 0, 200);
  if (draw(random, 0, 3) == 0) cost.output_layer = draw(random, 0, 50);
  cost.per = draw(random, 0, 1) == 0 ? UniformCost::Per::kRank : UniformCost::Per::kChunk;
  Draw drawn{spread(cost, schedule), {}};
  drawn.memory.release = static_cast<Release>(draw(random, 0, 2));
  drawn.memory.unit.input_grad = -draw(random, 0, kWhole);
  drawn.memory.unit.weight_grad = -drawn.memory.unit.forward - drawn.memory.unit.input_grad;
  drawn.memory.unit_parts = static_cast<std::int32_t>(draw(random, 1, 3));
  return drawn;
}

void expect_same_ranks(const BubbleReport& plain, const BubbleReport& whole) {
  ASSERT_EQ(plain.ranks.size(), whole.ranks.size());
  for (std::size_t rank = 0; rank < plain.ranks.size(); ++rank) {
    const RankReport& left = plain.ranks[rank];
    const RankReport& right = whole.ranks[rank];
    EXPECT_EQ(left.busy, right.busy);
    EXPECT_EQ(left.idle, right.idle);
    EXPECT_EQ(left.first_start, right.first_start);
    EXPECT_EQ(left.last_end, right.last_end);
    EXPECT_EQ(left.sends, right.sends);
    EXPECT_EQ(left.busy_by_kind, right.busy_by_kind);
    EXPECT_EQ(left.idle_by_cause, right.idle_by_cause);
    EXPECT_EQ(left.peak.chunks, right.peak.chunks);
    EXPECT_EQ(left.peak.activations, right.peak.activations);
    EXPECT_EQ(left.peak.units, right.peak.units);
    EXPECT_EQ(left.peak.bytes, right.peak.bytes);
    EXPECT_EQ(left.weights.has_value(), right.weights.has_value());
  }
}

void expect_same(const BubbleReport& plain, const BubbleReport& whole) {
  EXPECT_EQ(plain.source, whole.source);
  EXPECT_EQ(plain.schedule, whole.schedule);
  EXPECT_EQ(plain.shape, whole.shape);
  EXPECT_EQ(plain.makespan, whole.makespan);
  EXPECT_EQ(plain.max_span, whole.max_span);
  EXPECT_EQ(plain.ideal, whole.ideal);
  EXPECT_EQ(plain.bubble->ratio, whole.bubble->ratio);
  EXPECT_EQ(plain.bubble->overhead, whole.bubble->overhead);
  EXPECT_EQ(plain.bubble->span_rate, whole.bubble->span_rate);
  EXPECT_EQ(plain.bubble->time, whole.bubble->time);
  EXPECT_EQ(plain.period, whole.period);
  EXPECT_EQ(plain.lower_bound, whole.lower_bound);
  expect_same_ranks(plain, whole);
}

/// Whether the walk took a schedule. Where it did, the schedule must be valid and free of
/// deadlocks, and the report that of the whole way.
bool is_taken(const Schedule& schedule, const Draw& drawn) {
  const auto report_with = [&](LowerBound bound) {
    return report_plain_step(schedule, drawn.costs, drawn.memory, bound);
  };
  const std::optional<BubbleReport> brief = report_with(LowerBound::kSkip);
  const std::optional<BubbleReport> bounded = report_with(LowerBound::kFind);
  if (!brief) {
    EXPECT_FALSE(bounded.has_value());
    return false;
  }
  const auto validated = validate_schedule(schedule);
  const auto* const valid = std::get_if<ValidSchedule>(&validated);
  EXPECT_NE(valid, nullptr) << "the schedule is not valid";
  if (valid == nullptr) return true;
  const auto lowered = lower(*valid);
  const auto* const program = std::get_if<Program>(&lowered);
  EXPECT_NE(program, nullptr) << "the schedule deadlocks";
  if (program == nullptr) return true;
  const Timeline timeline = simulate(*program, drawn.costs);
  expect_same(*brief, analyze_briefly(*valid, *program, timeline, drawn.memory, LowerBound::kSkip));
  EXPECT_TRUE(bounded.has_value());
  if (bounded) expect_same(*bounded, analyze_briefly(*valid, *program, timeline, drawn.memory));
  return true;
}

TEST(PlainStep, IsTheBriefReportOfEverySchedule) {
  Random random(kSeed);
  std::map<std::string, int> built;
  std::map<std::string, int> taken;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    if (def.reads_costs) continue;
    for_each_small(def, {}, [&](const Schedule& schedule) {
      SCOPED_TRACE(def.name + ", p " + std::to_string(schedule.shape.ranks) + ", v " +
                   std::to_string(schedule.shape.chunks) + ", m " +
                   std::to_string(schedule.shape.microbatches) + ", seed " + std::to_string(kSeed));
      ++built[def.name];
      if (is_taken(schedule, draw_costs(random, schedule))) ++taken[def.name];
    });
  }
  for (const char* name : {"1f1b", "zb-h1", "zb-h2", "interleaved", "zb-v", "gpipe", "hanayo"})
    EXPECT_EQ(taken[name], built[name]) << name;
}

TEST(PlainStep, IsNeverThatOfAnInvalidSchedule) {
  int taken = 0;
  int refused = 0;
  for (std::uint32_t seed = 1; seed <= 6'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Schedule whole = random_schedule(seed);
    const Draw drawn = draw_costs(random, whole);
    if (is_taken(whole, drawn)) ++taken;
    if (!is_taken(damage(whole, seed), drawn)) ++refused;
  }
  EXPECT_GT(taken, 500);
  EXPECT_GT(refused, 500);
}

// Ops of 2^58 ns sum to more than a step may take; the whole way says so.
TEST(PlainStep, LeavesLongTimesToTheWholeWay) {
  ScheduleRequest request;
  request.shape = {2, 1, 4, 1, {}};
  const Schedule schedule = build_order(find_schedule("1f1b"), request);
  UniformCost cost;
  EXPECT_TRUE(report_plain_step(schedule, spread(cost, schedule), {}, LowerBound::kSkip));
  cost.forward = Nanos{1} << 58;
  EXPECT_FALSE(report_plain_step(schedule, spread(cost, schedule), {}, LowerBound::kSkip));
}

}  // namespace
}  // namespace bubblescope::tests
