#include "tests/support/order_interpreter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "sim/analysis/lower_bound.h"
#include "sim/engine/simulate.h"
#include "sim/ir/validate.h"
#include "tests/support/as_written.h"
#include "tests/support/event_loop.h"
#include "traces/schedules/native_schedule.h"

namespace bubblescope::tests {

namespace {

constexpr Nanos kMessage = 7;

Nanos duration_of(const Op& op) { return 10 + 3 * op.stage + static_cast<Nanos>(op.kind); }

/// Whether a stage reads another: by the graph, or else the one before it in its pipeline.
bool reads(const Schedule& schedule, std::int32_t stage, std::int32_t other) {
  const StageLists& inputs = schedule.graph.inputs();
  if (inputs.empty())
    return other == stage - 1 && stage % (schedule.stages() / schedule.pipelines) > 0;
  const std::vector<std::int32_t>& read = inputs[static_cast<std::size_t>(stage)];
  return std::count(read.begin(), read.end(), other) > 0;
}

/// The end of all that an op waits for; empty until all of it has ended.
std::optional<Nanos> ready_at(const Schedule& schedule, const Op& op, const OpEnds& ends) {
  Nanos ready = 0;
  bool known = true;
  const auto wait = [&](const std::string& awaited, Nanos latency) {
    const auto end = ends.find(awaited);
    known = known && end != ends.end();
    if (known) ready = std::max(ready, end->second + latency);
  };
  const auto wait_for_stage = [&](std::int32_t stage, const std::string& kind) {
    const auto rank_of = [&](std::int32_t of) {
      return schedule.rank_of_stage[static_cast<std::size_t>(of)];
    };
    const auto name = [&](const std::string& of_kind) {
      return std::to_string(stage) + of_kind + std::to_string(op.microbatch);
    };
    wait(name(kind == "B" && ends.contains(name("I")) ? "I" : kind),
         rank_of(stage) == rank_of(op.stage) ? 0 : kMessage);
  };
  const bool goes_back = op.kind == OpKind::kBackward || op.kind == OpKind::kInputGrad;
  if (goes_back) wait_for_stage(op.stage, "F");
  if (op.kind == OpKind::kWeightGrad) wait_for_stage(op.stage, "I");
  for (std::int32_t other = 0; other < schedule.stages(); ++other) {
    if (op.kind == OpKind::kForward && reads(schedule, op.stage, other)) wait_for_stage(other, "F");
    if (goes_back && reads(schedule, other, op.stage)) wait_for_stage(other, "B");
  }
  for (const AfterEdge& edge : schedule.after)
    if (to_string(edge.op) == to_string(op)) wait(to_string(edge.awaited), 0);
  return known ? std::optional(ready) : std::nullopt;
}

}  // namespace

std::optional<OpEnds> run_orders(const Schedule& schedule) {
  OpEnds ends;
  std::vector<std::size_t> next(schedule.order.size(), 0);
  std::vector<Nanos> free(schedule.order.size(), 0);
  std::int64_t left = schedule.op_count();
  for (bool progress = true; progress && left > 0;) {
    progress = false;
    for (std::size_t rank = 0; rank < next.size(); ++rank) {
      if (next[rank] == schedule.order[rank].size()) continue;
      const Op& op = schedule.order[rank][next[rank]];
      const std::optional<Nanos> ready = ready_at(schedule, op, ends);
      if (!ready) continue;
      free[rank] = ends[to_string(op)] = std::max(free[rank], *ready) + duration_of(op);
      ++next[rank];
      --left;
      progress = true;
    }
  }
  return left > 0 ? std::nullopt : std::optional(std::move(ends));
}

Program expect_times_of_orders(const Schedule& schedule) {
  EXPECT_TRUE(find_problems(schedule).empty());
  auto lowered = lower(schedule, {Overlap::kSerial});
  Program* const program = std::get_if<Program>(&lowered);
  const std::optional<OpEnds> expected = run_orders(schedule);
  EXPECT_TRUE(program != nullptr && expected);
  if (program == nullptr || !expected) return {};
  std::vector<Nanos> durations;
  for (const Instruction& instruction : program->instructions)
    durations.push_back(is_message(instruction) ? kMessage : duration_of(instruction.op));
  const Timeline timeline = simulate(*program, durations);
  const Timeline by_clock = run_by_the_clock(*program, durations);
  EXPECT_EQ(timeline.start, by_clock.start);
  EXPECT_EQ(timeline.end, by_clock.end);
  for (InstructionId id = 0; id < program->size(); ++id)
    if (const Op& op = program->instructions[id].op; is_compute(op.kind)) {
      EXPECT_EQ(timeline.end[id], expected->at(to_string(op)));
    }
  EXPECT_LE(lower_bound(*program, timeline),
            *std::max_element(timeline.end.begin(), timeline.end.end()));
  const std::string text = traces::write_native_schedule(schedule);
  EXPECT_EQ(traces::write_native_schedule(traces::read_native_schedule(text, "f.json")), text);
  return std::move(*program);
}

void expect_verdicts_of_programs(const Schedule& schedule, LowerOptions options) {
  const bool atomic = std::holds_alternative<Program>(lower(schedule));
  for (const ModeVerdict& verdict : check_modes(schedule, options)) {
    options.mode = verdict.mode;
    const bool runs = atomic && std::holds_alternative<Program>(lower(schedule, options));
    EXPECT_EQ(runs, !verdict.deadlock) << to_string(verdict.mode, options.eager_slots);
  }
}

}  // namespace bubblescope::tests
