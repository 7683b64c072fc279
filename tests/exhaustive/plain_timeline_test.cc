// Compares the complete report of a plain step, found from the ends of its ops, with the whole way:
// lowered, simulated and analyzed.
#include "sim/analysis/plain_timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "sim/ir/range.h"
#include "sim/model/schedule_def.h"
#include "tests/support/small_schedules.h"

namespace bubblescope::tests {
namespace {

constexpr std::uint32_t kSeed = 20'261'130;

bool draw_whether(Random& random) { return draw(random, 0, 1) == 1; }

/// A tensor in which some stages have a value per micro-batch, and the others one for all.
template <class Value, class DrawValue>
CostTensor<Value> draw_tensor(Random& random, const Schedule& schedule, DrawValue draw_value) {
  CostTensor<Value> tensor(1);
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    std::vector<Value> values(
        draw_whether(random) ? static_cast<std::size_t>(schedule.shape.microbatches) : 1);
    for (Value& value : values) value = draw_value();
    tensor.add_stage(values);
  }
  return tensor;
}

struct Draw {
  CostModel costs;
  MemoryModel memory;
};

/// Costs in which ties are common, by micro-batch, by link or the same for all.
CostModel draw_costs(Random& random, const Schedule& schedule) {
  const std::int64_t longest = draw_whether(random) ? 3 : 100;
  const auto draw_time = [&] { return draw(random, 1, longest); };
  const auto draw_stage = [&] {
    return StageCost{draw_time(), draw_time(), draw_time(), draw_time()};
  };
  CostModel costs;
  costs.message = draw(random, 0, longest);
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    costs.stages.push_back(draw_stage());
  if (draw_whether(random))
    costs.by_microbatch = draw_tensor<StageCost>(random, schedule, draw_stage);
  const std::int64_t kind = draw(random, 0, 2);
  if (kind == 1)
    costs.messages = draw_tensor<MessageCost>(random, schedule, [&] {
      return MessageCost{draw(random, 0, longest), 0, draw(random, 0, longest), 0};
    });
  if (kind == 2)
    for (std::int32_t link = 0; link < schedule.shape.ranks * schedule.shape.ranks; ++link)
      costs.message_between.push_back(draw(random, 0, longest));
  return costs;
}

MemoryDelta draw_delta(Random& random) {
  const std::int64_t forward = draw(random, 0, 1000);
  const std::int64_t input_grad = -draw(random, 0, forward);
  return {forward, input_grad, -forward - input_grad};
}

MemoryModel draw_memory(Random& random, const Schedule& schedule) {
  MemoryModel memory;
  memory.release = static_cast<Release>(draw(random, 0, 2));
  memory.unit = draw_delta(random);
  memory.unit_parts = static_cast<std::int32_t>(draw(random, 1, 3));
  if (draw_whether(random)) return memory;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    memory.activation_bytes.push_back(draw_delta(random));
  if (draw_whether(random))
    memory.by_microbatch = draw_tensor<SliceBytes>(random, schedule, [&] {
      return SliceBytes{draw_delta(random), 0};
    });
  if (draw_whether(random))
    for (std::int32_t rank = 0; rank < schedule.shape.ranks; ++rank)
      memory.static_bytes.push_back(draw(random, 0, 1000));
  return memory;
}

/// An instruction by what it is and when it runs, whatever its number.
using Named = std::tuple<std::string, std::int32_t, std::int32_t, Nanos, Nanos>;

Named name_of(InstructionId id, const Program& program, const Timeline& timeline) {
  const Instruction& instruction = program.instructions[id];
  return {to_string(instruction.op), instruction.rank, instruction.peer, timeline.start[id],
          timeline.end[id]};
}

std::vector<Named> name_path(const BubbleReport& report, const Program& program,
                             const Timeline& timeline) {
  std::vector<Named> path;
  for (const InstructionId id : report.critical_path)
    path.push_back(name_of(id, program, timeline));
  return path;
}

/// All compute ops of a rank, in order.
std::vector<Named> name_ops(std::int32_t rank, const Program& program, const Timeline& timeline) {
  std::vector<Named> ops;
  for (InstructionId id = 0; id < program.size(); ++id)
    if (program.instructions[id].lane == static_cast<std::uint32_t>(rank))
      ops.push_back(name_of(id, program, timeline));
  return ops;
}

/// A step in the whole way.
struct WholeStep {
  Program program;
  Timeline timeline;
  BubbleReport report;
};

WholeStep predict_whole(const ValidSchedule& schedule, const Draw& drawn) {
  WholeStep step;
  step.program = std::get<Program>(lower(schedule));
  step.timeline = simulate(step.program, price(step.program, drawn.costs));
  step.report = analyze(schedule, step.program, step.timeline, drawn.memory, Slack::kSkip);
  return step;
}

void expect_same_ranks(const PlainDetails& plain, const WholeStep& whole) {
  ASSERT_EQ(plain.report.ranks.size(), whole.report.ranks.size());
  for (std::size_t rank = 0; rank < plain.report.ranks.size(); ++rank) {
    RankReport left = plain.report.ranks[rank];
    RankReport right = whole.report.ranks[rank];
    ASSERT_EQ(left.peak.at.has_value(), right.peak.at.has_value());
    if (left.peak.at) {
      EXPECT_EQ(name_of(*left.peak.at, plain.program, plain.timeline),
                name_of(*right.peak.at, whole.program, whole.timeline));
    }
    left.peak.at.reset();
    right.peak.at.reset();
    EXPECT_TRUE(left == right) << "rank " << rank;
  }
}

void expect_same(const PlainDetails& plain, const WholeStep& whole) {
  EXPECT_EQ(plain.report.source, whole.report.source);
  EXPECT_EQ(plain.report.schedule, whole.report.schedule);
  EXPECT_EQ(plain.report.shape, whole.report.shape);
  EXPECT_EQ(plain.report.makespan, whole.report.makespan);
  EXPECT_EQ(plain.report.max_span, whole.report.max_span);
  EXPECT_EQ(plain.report.ideal, whole.report.ideal);
  EXPECT_TRUE(plain.report.bubble == whole.report.bubble);
  EXPECT_EQ(plain.report.period, whole.report.period);
  EXPECT_EQ(plain.report.lower_bound, whole.report.lower_bound);
  EXPECT_EQ(plain.report.memory.activation_bytes, whole.report.memory.activation_bytes);
  EXPECT_EQ(name_path(plain.report, plain.program, plain.timeline),
            name_path(whole.report, whole.program, whole.timeline));
  expect_same_ranks(plain, whole);
}

/// Whether the step was plain; if it was, its details must be those of the whole way.
bool is_taken(const ValidSchedule& schedule, const Draw& drawn, std::int32_t shown) {
  const auto plain = detail_plain_step(schedule, drawn.costs, drawn.memory,
                                       [&](const BubbleReport&) { return std::vector{shown}; });
  if (!plain) return false;
  const WholeStep whole = predict_whole(schedule, drawn);
  expect_same(*plain, whole);
  EXPECT_EQ(name_ops(shown, plain->program, plain->timeline),
            name_ops(shown, whole.program, whole.timeline));
  return true;
}

TEST(PlainTimeline, HasTheCompleteReportOfEverySchedule) {
  Random random(kSeed);
  std::map<std::string, int> built;
  std::map<std::string, int> taken;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    if (def.reads_costs) continue;
    for_each_small(def, {5, 3, 16}, [&](Schedule order) {
      const Shape& shape = order.shape;
      SCOPED_TRACE(def.name + ", p " + std::to_string(shape.ranks) + ", v " +
                   std::to_string(shape.chunks) + ", m " + std::to_string(shape.microbatches) +
                   ", seed " + std::to_string(kSeed));
      const ValidSchedule schedule = require_valid(std::move(order));
      ++built[def.name];
      const Draw drawn{draw_costs(random, schedule), draw_memory(random, schedule)};
      const auto shown = static_cast<std::int32_t>(draw(random, 0, schedule->shape.ranks - 1));
      if (is_taken(schedule, drawn, shown)) ++taken[def.name];
    });
  }
  for (const char* name :
       {"1f1b", "zb-h1", "zb-h2", "interleaved", "zb-v", "gpipe", "hanayo", "chimera", "gems"})
    EXPECT_EQ(taken[name], built[name]) << name;
}

ValidSchedule make_1f1b() {
  ScheduleRequest request;
  request.shape = {2, 1, 4, 1, {}};
  return require_valid(build_order(find_schedule("1f1b"), request));
}

// The critical path would depend on the order in which a Program lists ops that end together.
TEST(PlainTimeline, LeavesOpsWithoutTimeToTheWholeWay) {
  const ValidSchedule schedule = make_1f1b();
  const CostModel costs = spread({}, schedule);
  EXPECT_TRUE(is_taken(schedule, {costs, {}}, 0));
  for (const auto member : {&StageCost::forward, &StageCost::backward}) {
    CostModel without = costs;
    without.stages[1].*member = 0;
    EXPECT_FALSE(is_taken(schedule, {without, {}}, 0));
    CostModel without_once = costs;
    without_once.by_microbatch = CostTensor<StageCost>(1);
    std::vector<StageCost> values(4, costs.stages[0]);
    without_once.by_microbatch.add_stage(values);
    values[2].*member = 0;
    without_once.by_microbatch.add_stage(values);
    EXPECT_FALSE(is_taken(schedule, {without_once, {}}, 0));
  }
}

TEST(PlainTimeline, LeavesUncountableMemoryToTheWholeWay) {
  const ValidSchedule schedule = make_1f1b();
  const CostModel costs = spread({}, schedule);
  MemoryModel memory;
  memory.activation_bytes.assign(2, {kMaxBytes, 0, -kMaxBytes});
  EXPECT_FALSE(is_taken(schedule, {costs, memory}, 0));
  memory.activation_bytes.assign(2, {100, 0, -100});
  EXPECT_TRUE(is_taken(schedule, {costs, memory}, 0));
  memory.static_bytes.assign(2, kMaxBytes);
  EXPECT_FALSE(is_taken(schedule, {costs, memory}, 0));
  MemoryModel units;
  units.unit = {kMaxBytes, 0, -kMaxBytes};
  EXPECT_FALSE(is_taken(schedule, {costs, units}, 0));
}

TEST(PlainTimeline, LeavesLongTimesToTheWholeWay) {
  const ValidSchedule schedule = make_1f1b();
  CostModel costs = spread({}, schedule);
  costs.stages[0].forward = Nanos{1} << 58;
  EXPECT_FALSE(is_taken(schedule, {costs, {}}, 0));
}

}  // namespace
}  // namespace bubblescope::tests
