// Random and all small stage graphs: the dataflow pass, the event loop and a plain interpreter
// agree, modes deadlock exactly where their Programs have cycles, and training equals the serial
// reference.
#include "sim/ir/stage_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/analysis/lower_bound.h"
#include "sim/engine/simulate.h"
#include "sim/ir/validate.h"
#include "tests/support/as_written.h"
#include "tests/support/event_loop.h"
#include "tests/support/order_interpreter.h"
#include "tests/support/random_schedule.h"
#include "tests/support/verified_training.h"
#include "traces/schedules/native_schedule.h"

namespace bubblescope::tests {
namespace {

constexpr Nanos kMessage = 7;

RandomTraits graph_traits() {
  RandomTraits traits;
  traits.graph = true;
  return traits;
}

Nanos duration_of(const Op& op) { return 10 + 3 * op.stage + static_cast<Nanos>(op.kind); }

/// Knows nothing of Programs and of the functions that walk a stage graph: every rank runs its ops
/// in order, each when the stages that it reads, or that read it, have ended, with a message's time
/// between ranks. Empty if ranks wait for each other.
class Interpreter {
 public:
  explicit Interpreter(const Schedule& schedule) : schedule_(schedule) {}

  using Ends = OpEnds;

  std::optional<Ends> run() const {
    return run_orders(schedule_,
                      {[this](const Op& op, const Ends& ends) { return ready_at(op, ends); },
                       [](const Op& op) { return duration_of(op); }});
  }

 private:
  bool reads(std::int32_t stage, std::int32_t other) const {
    const std::vector<std::int32_t>& inputs =
        schedule_.graph.inputs()[static_cast<std::size_t>(stage)];
    return std::count(inputs.begin(), inputs.end(), other) > 0;
  }

  std::optional<Nanos> ready_at(const Op& op, const Ends& ends) const {
    Nanos ready = 0;
    bool known = true;
    const auto wait = [&](std::int32_t stage, std::string kind) {
      if (kind == "B" && ends.contains(name(stage, "I", op))) kind = "I";
      const auto end = ends.find(name(stage, kind, op));
      known = known && end != ends.end();
      const auto rank_of = [&](std::int32_t of) {
        return schedule_.rank_of_stage[static_cast<std::size_t>(of)];
      };
      const Nanos latency = rank_of(stage) == rank_of(op.stage) ? 0 : kMessage;
      if (known) ready = std::max(ready, end->second + latency);
    };
    const bool goes_back = op.kind == OpKind::kBackward || op.kind == OpKind::kInputGrad;
    if (goes_back) wait(op.stage, "F");
    if (op.kind == OpKind::kWeightGrad) wait(op.stage, "I");
    for (std::int32_t other = 0; other < schedule_.stages(); ++other) {
      if (op.kind == OpKind::kForward && reads(op.stage, other)) wait(other, "F");
      if (goes_back && reads(other, op.stage)) wait(other, "B");
    }
    return known ? std::optional(ready) : std::nullopt;
  }

  static std::string name(std::int32_t stage, const std::string& kind, const Op& op) {
    return std::to_string(stage) + kind + std::to_string(op.microbatch);
  }

  const Schedule& schedule_;
};

std::vector<Nanos> durations_of(const Program& program) {
  std::vector<Nanos> durations;
  for (const Instruction& instruction : program.instructions)
    durations.push_back(is_message(instruction) ? kMessage : duration_of(instruction.op));
  return durations;
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
  for (std::uint32_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Schedule schedule = random_schedule(seed, graph_traits());
    ASSERT_TRUE(find_problems(schedule).empty());
    const auto lowered = lower(schedule, {Overlap::kSerial});
    const Program* const program = std::get_if<Program>(&lowered);
    ASSERT_NE(program, nullptr);
    const std::vector<Nanos> durations = durations_of(*program);
    const Timeline timeline = simulate(*program, durations);
    const Timeline by_clock = run_by_the_clock(*program, durations);
    ASSERT_EQ(timeline.start, by_clock.start);
    ASSERT_EQ(timeline.end, by_clock.end);
    const Interpreter::Ends expected = *Interpreter(schedule).run();
    std::size_t sent = 0;
    for (InstructionId id = 0; id < program->size(); ++id) {
      const Instruction& instruction = program->instructions[id];
      sent += is_message(instruction) ? 1 : 0;
      if (is_compute(instruction.op.kind)) {
        ASSERT_EQ(timeline.end[id], expected.at(to_string(instruction.op)));
      }
    }
    EXPECT_EQ(sent, count_messages(schedule));
    messages += sent;
    const Nanos makespan = *std::max_element(timeline.end.begin(), timeline.end.end());
    EXPECT_LE(lower_bound(*program, timeline), makespan);
    const std::string text = traces::write_native_schedule(schedule);
    EXPECT_EQ(traces::read_native_schedule(text, "f.json").graph, schedule.graph);
    EXPECT_EQ(traces::write_native_schedule(traces::read_native_schedule(text, "f.json")), text);
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
    const bool ends = Interpreter(schedule).run().has_value();
    ASSERT_EQ(std::holds_alternative<Program>(lower(schedule, {Overlap::kSerial})), ends) << seed;
    ++(ends ? sound : stuck);
  }
  EXPECT_GT(stuck, 100);
  EXPECT_GT(sound, 100);
}

// The verdict on each mode, which may come from a shortcut, is that of the lowered Program.
TEST(StageGraph, DeadlocksInAModeExactlyIfItsProgramHasACycle) {
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    const Schedule schedule = random_schedule(seed, graph_traits());
    const bool atomic = std::holds_alternative<Program>(lower(schedule));
    for (const ModeVerdict& verdict : check_modes(schedule)) {
      LowerOptions options;
      options.mode = verdict.mode;
      const bool runs = atomic && std::holds_alternative<Program>(lower(schedule, options));
      ASSERT_EQ(runs, !verdict.deadlock)
          << "seed " << seed << ", " << to_string(verdict.mode, options.eager_slots);
    }
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
