// Random schedules with random after edges: the dataflow pass, the event loop and a plain
// interpreter of orders, inputs and edges agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "sim/analysis/lower_bound.h"
#include "sim/engine/simulate.h"
#include "sim/ir/validate.h"
#include "sim/model/cost_model.h"
#include "tests/support/as_written.h"
#include "tests/support/event_loop.h"
#include "tests/support/order_interpreter.h"
#include "tests/support/random_schedule.h"
#include "traces/schedules/native_schedule.h"

namespace bubblescope::tests {
namespace {

constexpr unsigned kSeed = 20261123;
constexpr Nanos kMessage = 7;

Nanos duration_of(const Op& op) { return 10 + 3 * op.stage + static_cast<Nanos>(op.kind); }

/// Knows nothing of Programs: every rank runs its ops in order, each when its inputs and the ops of
/// its edges have ended. Pairs count as two ops. Empty if ranks wait for each other.
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
  std::optional<Nanos> ready_at(const Op& op, const Ends& ends) const {
    Nanos ready = 0;
    bool known = true;
    const auto wait = [&](const std::string& awaited, Nanos latency) {
      const auto end = ends.find(awaited);
      known = known && end != ends.end();
      if (known) ready = std::max(ready, end->second + latency);
    };
    const auto name = [&](std::int32_t stage, const char* kind) {
      return std::to_string(stage) + kind + std::to_string(op.microbatch);
    };
    const auto wait_for_gradient = [&](std::int32_t stage, Nanos latency) {
      wait(ends.contains(name(stage, "I")) ? name(stage, "I") : name(stage, "B"), latency);
    };
    const auto latency = [&](std::int32_t stage) {
      return schedule_.rank_of_stage[static_cast<std::size_t>(stage)] ==
                     schedule_.rank_of_stage[static_cast<std::size_t>(op.stage)]
                 ? 0
                 : kMessage;
    };
    const std::int32_t per = schedule_.stages() / schedule_.pipelines;
    if (op.kind == OpKind::kForward) {
      if (op.stage % per > 0) wait(name(op.stage - 1, "F"), latency(op.stage - 1));
    } else if (op.kind == OpKind::kWeightGrad) {
      wait(name(op.stage, "I"), 0);
    } else {
      wait(name(op.stage, "F"), 0);
      if (op.stage % per < per - 1) wait_for_gradient(op.stage + 1, latency(op.stage + 1));
    }
    for (const AfterEdge& edge : schedule_.after)
      if (to_string(edge.op) == to_string(op)) wait(to_string(edge.awaited), 0);
    return known ? std::optional(ready) : std::nullopt;
  }

  const Schedule& schedule_;
};

std::vector<Nanos> durations_of(const Program& program) {
  std::vector<Nanos> durations;
  for (const Instruction& instruction : program.instructions)
    durations.push_back(is_message(instruction) ? kMessage : duration_of(instruction.op));
  return durations;
}

std::vector<Op> all_ops(const Schedule& schedule) {
  std::vector<Op> ops;
  for (const RankOrder& order : schedule.order)
    for (Op op : order) {
      op.pairing = Pairing::kAlone;
      ops.push_back(op);
    }
  return ops;
}

/// Up to twelve edges between any two ops. Few of them fit together.
Schedule with_any_edges(Schedule schedule, std::mt19937& random) {
  const std::vector<Op> ops = all_ops(schedule);
  for (auto count = 1 + random() % 12; count > 0; --count)
    schedule.after.push_back({ops[random() % ops.size()], ops[random() % ops.size()]});
  return schedule;
}

/// Edges that the order of ends of the plain schedule allows.
Schedule with_sound_edges(Schedule schedule, std::mt19937& random) {
  const Interpreter::Ends ends = *Interpreter(schedule).run();
  const std::vector<Op> ops = all_ops(schedule);
  for (auto count = 1 + random() % 12; count > 0; --count) {
    Op op = ops[random() % ops.size()];
    Op awaited = ops[random() % ops.size()];
    if (ends.at(to_string(op)) == ends.at(to_string(awaited))) continue;
    if (ends.at(to_string(op)) < ends.at(to_string(awaited))) std::swap(op, awaited);
    const AfterEdge edge{op, awaited};
    if (std::find(schedule.after.begin(), schedule.after.end(), edge) == schedule.after.end())
      schedule.after.push_back(edge);
  }
  return schedule;
}

void expect_same_ends(const Interpreter::Ends& expected, const Program& program,
                      const Timeline& timeline, const std::string& what) {
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (is_compute(instruction.op.kind)) {
      ASSERT_EQ(timeline.end[id], expected.at(to_string(instruction.op))) << what;
    }
  }
}

TEST(AfterEdges, TimeAsAPlainInterpreterDoes) {
  std::mt19937 random(kSeed);
  std::size_t edges = 0;
  for (std::uint32_t round = 0; round < 1500; ++round) {
    const std::string what = "seed " + std::to_string(kSeed) + ", round " + std::to_string(round);
    const Schedule schedule = with_sound_edges(random_schedule(round), random);
    edges += schedule.after.size();
    ASSERT_TRUE(find_problems(schedule).empty()) << what;
    const auto lowered = lower(schedule, {Overlap::kSerial});
    const Program* const program = std::get_if<Program>(&lowered);
    ASSERT_NE(program, nullptr) << what;
    const std::vector<Nanos> durations = durations_of(*program);
    const Timeline timeline = simulate(*program, durations);
    const Timeline by_clock = run_by_the_clock(*program, durations);
    ASSERT_EQ(timeline.start, by_clock.start) << what;
    ASSERT_EQ(timeline.end, by_clock.end) << what;
    expect_same_ends(*Interpreter(schedule).run(), *program, timeline, what);
    const Nanos makespan = *std::max_element(timeline.end.begin(), timeline.end.end());
    EXPECT_LE(lower_bound(*program, timeline), makespan) << what;
    const std::string text = traces::write_native_schedule(schedule);
    EXPECT_EQ(traces::write_native_schedule(traces::read_native_schedule(text, "f.json")), text);
  }
  EXPECT_GT(edges, 1500u);
}

// An edge to an op later on the same rank, to itself or twice is a problem; every other set of
// edges deadlocks exactly if the interpreter gets stuck.
TEST(AfterEdges, DeadlockExactlyWhereAPlainInterpreterIsStuck) {
  std::mt19937 random(kSeed + 1);
  int stuck = 0;
  int sound = 0;
  for (std::uint32_t round = 0; round < 3000; ++round) {
    const std::string what = "seed " + std::to_string(kSeed) + ", round " + std::to_string(round);
    const Schedule schedule = with_any_edges(random_schedule(round), random);
    const bool ends = Interpreter(schedule).run().has_value();
    if (!find_problems(schedule).empty()) continue;
    const bool is_program = std::holds_alternative<Program>(lower(schedule, {Overlap::kSerial}));
    ASSERT_EQ(is_program, ends) << what;
    ++(ends ? sound : stuck);
  }
  EXPECT_GT(stuck, 100);
  EXPECT_GT(sound, 100);
}

// The verdict on each mode, which may come from a shortcut, is that of the lowered Program.
TEST(AfterEdges, DeadlockInAModeExactlyIfItsProgramHasACycle) {
  std::mt19937 random(kSeed + 2);
  for (std::uint32_t round = 0; round < 400; ++round) {
    const Schedule schedule = with_sound_edges(random_schedule(round), random);
    const bool atomic = std::holds_alternative<Program>(lower(schedule));
    for (const Lowering posting : {Lowering::kAsap, Lowering::kDeferred}) {
      LowerOptions options;
      options.posting = posting;
      for (const ModeVerdict& verdict : check_modes(schedule, options)) {
        options.mode = verdict.mode;
        const bool runs = atomic && std::holds_alternative<Program>(lower(schedule, options));
        ASSERT_EQ(runs, !verdict.deadlock)
            << "round " << round << ", " << to_string(verdict.mode, options.eager_slots);
      }
    }
  }
}

}  // namespace
}  // namespace bubblescope::tests
