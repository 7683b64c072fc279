// Random and all small stage graphs: the dataflow pass, the event loop and a plain interpreter
// agree, modes deadlock exactly where their Programs have cycles, and training equals the serial
// reference.
#include "sim/ir/stage_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/ir/validate.h"
#include "tests/support/as_written.h"
#include "tests/support/order_interpreter.h"
#include "tests/support/random_schedule.h"
#include "tests/support/verified_training.h"
#include "traces/schedules/native_schedule.h"

namespace bubblescope::tests {
namespace {

RandomTraits graph_traits() {
  RandomTraits traits;
  traits.graph = true;
  return traits;
}

/// One message per value and rank that needs it.
std::size_t count_messages(const Schedule& schedule) {
  std::set<std::tuple<bool, std::int32_t, std::int32_t>> messages;
  const StageLists& inputs = schedule.graph.inputs();
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    for (const std::int32_t input : inputs[static_cast<std::size_t>(stage)]) {
      const std::int32_t here = schedule.rank_of_stage[static_cast<std::size_t>(stage)];
      const std::int32_t there = schedule.rank_of_stage[static_cast<std::size_t>(input)];
      if (here == there) continue;
      messages.insert({true, input, here});
      if (!schedule.forward_only) messages.insert({false, stage, there});
    }
  return messages.size() * static_cast<std::size_t>(schedule.shape.microbatches);
}

TEST(StageGraph, TimesAsAPlainInterpreterDoes) {
  std::size_t messages = 0;
  for (std::uint32_t seed = 0; seed < 1500 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Schedule schedule = random_schedule(seed, graph_traits());
    const Program program = expect_times_of_orders(schedule);
    const auto sent = static_cast<std::size_t>(
        std::count_if(program.instructions.begin(), program.instructions.end(),
                      [](const Instruction& instruction) { return is_message(instruction); }));
    EXPECT_EQ(sent, count_messages(schedule));
    messages += sent;
    const std::string text = traces::write_native_schedule(schedule);
    EXPECT_EQ(traces::read_native_schedule(text, "f.json").graph, schedule.graph);
  }
  EXPECT_GT(messages, 10'000u);
}

/// Exchanges ops of the ranks' orders that may stand in any order on their own stage.
Schedule with_swapped_ops(Schedule schedule, std::mt19937& random) {
  for (RankOrder& ops : schedule.order) {
    for (Op& op : ops) op.pairing = Pairing::kAlone;
    for (std::size_t at = 1; at < ops.size(); ++at)
      if (ops[at].stage != ops[at - 1].stage && random() % 3 == 0) std::swap(ops[at], ops[at - 1]);
  }
  return schedule;
}

TEST(StageGraph, DeadlocksExactlyWhereAPlainInterpreterIsStuck) {
  std::mt19937 random(20261124);
  int stuck = 0;
  int sound = 0;
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    const Schedule schedule = with_swapped_ops(random_schedule(seed, graph_traits()), random);
    ASSERT_TRUE(find_problems(schedule).empty()) << seed;
    const bool ends = run_orders(schedule).has_value();
    ASSERT_EQ(std::holds_alternative<Program>(lower(schedule, {Overlap::kSerial})), ends) << seed;
    ++(ends ? sound : stuck);
  }
  EXPECT_GT(stuck, 100);
  EXPECT_GT(sound, 100);
}

TEST(StageGraph, DeadlocksInAModeExactlyIfItsProgramHasACycle) {
  for (std::uint32_t seed = 0; seed < 600 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_verdicts_of_programs(random_schedule(seed, graph_traits()));
  }
}

/// Stage s reads those earlier stages whose bit in `edges` is set; the bits of stage s follow those
/// of the stages before it.
StageGraph graph_of(std::int32_t stages, std::uint32_t edges) {
  StageLists inputs;
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    std::vector<std::int32_t>& read = inputs.emplace_back();
    for (std::int32_t other = 0; other < stage; ++other, edges >>= 1)
      if ((edges & 1) != 0) read.push_back(other);
  }
  return StageGraph(std::move(inputs));
}

/// Every stage runs all forwards, then all backwards, which the numbers of stages put in order.
Schedule schedule_of(const StageGraph& graph, std::int32_t ranks) {
  Schedule schedule;
  schedule.name = "graph";
  const auto stages = static_cast<std::int32_t>(graph.inputs().size());
  schedule.shape = {ranks, (stages + ranks - 1) / ranks, 2, 1, {}};
  schedule.graph = graph;
  schedule.order.resize(static_cast<std::size_t>(ranks));
  for (std::int32_t stage = 0; stage < stages; ++stage)
    schedule.rank_of_stage.push_back(stage % ranks);
  for (std::int32_t at = 0; at < 2; ++at)
    for (std::int32_t stage = 0; stage < stages; ++stage)
      schedule.order[static_cast<std::size_t>(stage % ranks)].push_back(forward(stage, at));
  for (std::int32_t at = 0; at < 2; ++at)
    for (std::int32_t stage = stages; stage-- > 0;)
      schedule.order[static_cast<std::size_t>(stage % ranks)].push_back(backward(stage, at));
  return schedule;
}

TEST(StageGraph, OfUpToFourStagesTrainAsTheSerialReference) {
  for (std::int32_t stages = 1; stages <= 4; ++stages)
    for (std::uint32_t edges = 0; edges < 1u << (stages * (stages - 1) / 2); ++edges)
      for (const std::int32_t ranks : {1, 2, stages}) {
        if (ranks > stages) continue;
        SCOPED_TRACE(std::to_string(stages) + " stages, edges " + std::to_string(edges) + ", " +
                     std::to_string(ranks) + " ranks");
        const Schedule schedule = schedule_of(graph_of(stages, edges), ranks);
        const exec::Verification verification = train(schedule, lowered(schedule), small_model());
        EXPECT_TRUE(verification.exact) << to_string(verification);
      }
}

TEST(StageGraph, OfManyStagesTrainAsTheSerialReference) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTraits traits = graph_traits();
    traits.slices = seed % 3 == 0;
    traits.recompute = seed % 2 == 0;
    const Schedule schedule = random_schedule(seed, traits);
    const exec::Verification verification = train(schedule, lowered(schedule), small_model());
    EXPECT_TRUE(verification.matches) << to_string(verification);
  }
}

// The verification tells graphs apart that differ in one edge: a stage that reads another, or one
// more, computes something else.
TEST(StageGraph, TrainsOtherwiseWithAnotherEdge) {
  constexpr std::uint32_t kEdges = 0b110'10'1;  // 1 reads 0, 2 reads 1, 3 reads 1 and 2
  const Schedule schedule = schedule_of(graph_of(4, kEdges), 2);
  const exec::TrainingResult expected = exec::train_serially(schedule, small_model(), 2);
  for (std::uint32_t bit = 0; bit < 6; ++bit) {
    const Schedule other = schedule_of(graph_of(4, kEdges ^ (1u << bit)), 2);
    const exec::TrainingResult trained = exec::train_serially(other, small_model(), 2);
    EXPECT_NE(trained.losses, expected.losses) << bit;
  }
}

}  // namespace
}  // namespace bubblescope::tests
