// Tests critical paths of measured steps whose messages are timed by the readers of traces.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/analysis/critical_path.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "sim/ir/validate.h"
#include "tests/support/as_written.h"
#include "tests/support/chrome_text.h"
#include "tests/support/recorded_step.h"
#include "traces/measured/assemble_steps.h"
#include "traces/measured/message_times.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

std::vector<traces::MeasuredStep> read(const std::string& text) {
  return traces::assemble_steps(traces::parse_trace({"t.json", text})).steps;
}

/// "0F0 0F1 1F0 ...": the ops of the critical path.
std::string path_of(const traces::MeasuredStep& step) {
  std::string path;
  const Blockers blockers(step.program, step.timeline);
  for (const InstructionId id : find_critical_path(step.program, step.timeline, blockers))
    if (is_compute(step.program.instructions[id].op.kind))
      path += (path.empty() ? "" : " ") + to_string(step.program.instructions[id].op);
  return path;
}

/// Two ranks, two micro-batches. Rank 1 is slow: it posts the receive of 0F1 at 100, after 1B0,
/// although 0F1 has been ready since 20. The send of 1B0 takes from 100 to 102.
std::string slow_receiver() {
  Events events;
  name_threads(events, 0);
  events.slice("forward-compute", 0, 0, 0, 10, step_args(0, 0))
      .slice("forward-send", 0, 1, 10, 1, step_args(0, -1, -1))
      .slice("forward-compute", 0, 0, 10, 10, step_args(0, 1))
      .slice("forward-send", 0, 1, 20, 82, step_args(0, -1, -1))
      .slice("backward-recv", 0, 1, 20, 82, step_args(0, -1, -1))
      .slice("backward-compute", 0, 0, 103, 20, step_args(0, 0))
      .slice("backward-recv", 0, 1, 123, 80, step_args(0, -1, -1))
      .slice("backward-compute", 0, 0, 204, 20, step_args(0, 1));
  events.slice("forward-recv", 0, 11, 0, 11, step_args(0, -1, -1))
      .slice("forward-compute", 0, 10, 11, 29, step_args(0, 0))
      .slice("backward-compute", 0, 10, 40, 60, step_args(0, 0))
      .slice("backward-send", 0, 11, 100, 2, step_args(0, -1, -1))
      .slice("forward-recv", 0, 11, 100, 2, step_args(0, -1, -1))
      .slice("forward-compute", 0, 10, 103, 29, step_args(0, 1))
      .slice("backward-compute", 0, 10, 132, 69, step_args(0, 1))
      .slice("backward-send", 0, 11, 201, 2, step_args(0, -1, -1));
  return events.list();
}

// 0F1 ends 80 us before its message starts, because the receiver was not ready.
TEST(MeasuredPath, LeadsToTheReceiverThatWasBusy) {
  EXPECT_EQ(path_of(read(slow_receiver())[0]), "0F0 1F0 1B0 1F1 1B1 0B1");
}

/// The arrival of the second message of "0F0 0F1 | 1F0 1F1". Rank 1 runs 1F0 from 10 to 110, waits,
/// and runs 1F1 from `taken`. The receive of 0F1, which is ready at 20, was posted at 10.
Nanos arrival_of_second(bool by_host, Nanos taken) {
  const ValidSchedule schedule = std::get<ValidSchedule>(
      validate_schedule(traces::parse_schedule_text("0F0 0F1 | 1F0 1F1", "two")));
  const Program program = std::get<Program>(lower(schedule));
  const std::map<std::string, std::pair<Nanos, Nanos>> times{
      {"0F0", {0, 10}}, {"0F1", {10, 20}}, {"1F0", {10, 110}}, {"1F1", {taken, 210}}};
  Timeline timeline;
  for (const Instruction& one : program.instructions) {
    const auto found = times.find(to_string(one.op));
    timeline.start.push_back(found == times.end() ? 0 : found->second.first);
    timeline.end.push_back(found == times.end() ? 0 : found->second.second);
  }
  traces::ObservedOp receive;
  receive.op = {1, 1, 0, OpKind::kRecvForward};
  receive.recorder = 1;
  receive.may_hold_waiting = by_host;
  receive.start = 10;
  receive.end = taken;
  timeline = traces::time_messages(schedule, program, {receive}, std::move(timeline));
  for (InstructionId id = 0; id < program.size(); ++id)
    if (to_string(program.instructions[id].op) == "0SEND_F1") return timeline.end[id];
  return -1;
}

// With gloo, a receive ends when its rank takes the message. If the rank waited for only 1 of the
// 91 ns since the message was ready, it had arrived before; if it waited for 40 of 130, it had not.
TEST(MessageTimes, DoNotTakeForTravelWhatAReceiverWasBusy) {
  EXPECT_EQ(arrival_of_second(true, 111), 110);
  EXPECT_EQ(arrival_of_second(true, 150), 150);
  EXPECT_EQ(arrival_of_second(false, 111), 111);  // a device shows when it arrived
}

/// A simulated step as another program would have recorded it: every op and message at its time,
/// all receives posted at the start of the step.
std::string as_recorded(const RecordedStep& step) {
  Events events;
  const auto number = [](const char* key, std::int64_t value) {
    return std::string("\"") + key + "\":" + std::to_string(value);
  };
  for (std::int32_t rank = 0; rank < step.program.ranks; ++rank)
    events.thread(0, rank, "PP rank " + std::to_string(rank) + ", TP rank 0, compute");
  for (InstructionId id = 0; id < step.program.size(); ++id) {
    const Instruction& one = step.program.instructions[id];
    const auto start = static_cast<int>(step.timeline.start[id] / 1000);
    const auto end = static_cast<int>(step.timeline.end[id] / 1000);
    const auto add = [&](const Op& op, std::int32_t rank, int from) {
      events.slice("op", 0, rank, from, end - from,
                   "\"op\":\"" + to_string(op) + "\"," + number("step", 0));
    };
    if (is_compute(one.op.kind)) add(one.op, one.rank, start);
    if (!is_message(one)) continue;
    add(one.op, one.rank, start);
    Op receive = one.op;
    const bool is_forward = one.op.kind == OpKind::kSendForward;
    receive.kind = is_forward ? OpKind::kRecvForward : OpKind::kRecvBackward;
    receive.stage += is_forward ? 1 : -1;
    add(receive, one.peer, 0);
  }
  return events.list();
}

TEST(MeasuredPath, IsThatOfTheSimulationThatWasRecorded) {
  std::mt19937 random(20261125);
  for (int round = 0; round < 100; ++round) {
    RecordedStep step = record_step("1f1b", {.ranks = 4, .microbatches = 6});
    std::vector<Nanos> durations(step.program.size());
    for (Nanos& duration : durations)
      duration = 1000 * (1000 + static_cast<Nanos>(random() % 9000));
    step.timeline = simulate(step.program, durations);
    const std::vector<traces::MeasuredStep> measured = read(as_recorded(step));
    ASSERT_EQ(measured.size(), 1u);
    const traces::MeasuredStep simulated{"", step.schedule, step.program, step.timeline};
    EXPECT_EQ(path_of(measured[0]), path_of(simulated)) << round;
  }
}

}  // namespace
}  // namespace bubblescope::tests
