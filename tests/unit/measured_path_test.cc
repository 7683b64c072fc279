// Tests critical paths of measured steps whose messages are timed by the readers of traces.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/analysis/critical_path.h"
#include "sim/analysis/replay.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "tests/support/as_written.h"
#include "tests/support/chrome_text.h"
#include "tests/support/recorded_step.h"
#include "traces/measured/assemble_steps.h"
#include "traces/measured/message_times.h"
#include "traces/measured/time_span.h"
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

/// The receive of one message.
struct Receive {
  std::int32_t microbatch = 0;
  Nanos end = 0;
  std::optional<Nanos> waited_from = {};
  bool by_host = true;
  Nanos posted = 10;
  bool numbered = true;
};

/// When the messages of "0F0 0F1 | 1F0 1F1" travel: 0F0 ends at 10 units and 0F1 at 20, which ranks
/// can receive from 10 on. Rank 1 runs 1F0 from `first` to 110, and 1F1 from the end of its
/// receive.
std::vector<traces::TimeSpan> travels(const std::vector<Receive>& receives, Nanos first,
                                      Nanos unit) {
  const ValidSchedule schedule = std::get<ValidSchedule>(
      validate_schedule(traces::parse_schedule_text("0F0 0F1 | 1F0 1F1", "two")));
  const Program program = std::get<Program>(lower(schedule));
  const std::map<std::string, std::pair<Nanos, Nanos>> times{
      {"0F0", {0, 10}},
      {"0F1", {10, 20}},
      {"1F0", {first, 110}},
      {"1F1", {receives.back().end, receives.back().end + 50}}};
  Timeline timeline;
  for (const Instruction& one : program.instructions) {
    const auto found = times.find(to_string(one.op));
    timeline.start.push_back(found == times.end() ? 0 : unit * found->second.first);
    timeline.end.push_back(found == times.end() ? 0 : unit * found->second.second);
  }
  std::vector<traces::ObservedOp> messages;
  for (const Receive& one : receives) {
    traces::ObservedOp& receive = messages.emplace_back();
    receive.op = {1, one.microbatch, 0, OpKind::kRecvForward};
    receive.recorder = 1;
    receive.may_hold_waiting = one.by_host;
    receive.numbered = one.numbered;
    receive.start = unit * one.posted;
    receive.end = unit * one.end;
    if (one.waited_from) receive.waited_from = unit * *one.waited_from;
  }
  timeline = traces::time_messages(schedule, program, messages, std::move(timeline));
  std::vector<traces::TimeSpan> spans(2);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Op& op = program.instructions[id].op;
    if (op.kind == OpKind::kSendForward)
      spans[static_cast<std::size_t>(op.microbatch)] = {timeline.start[id] / unit,
                                                        timeline.end[id] / unit};
  }
  return spans;
}

/// When they arrive.
std::vector<Nanos> arrivals(const std::vector<Receive>& receives, Nanos first = 10,
                            Nanos unit = 1) {
  std::vector<Nanos> ends;
  for (const traces::TimeSpan& span : travels(receives, first, unit)) ends.push_back(span.end);
  return ends;
}

// With gloo, a receive ends when its rank takes the message. If the rank waited for only 1 of the
// 91 ns since the message was ready, it had arrived before; if it waited for 40 of 130, it had not.
TEST(MessageTimes, DoNotTakeForTravelWhatAReceiverWasBusy) {
  EXPECT_EQ(arrivals({{1, 111}})[1], 110);
  EXPECT_EQ(arrivals({{1, 150}})[1], 150);
  EXPECT_EQ(arrivals({{1, 111, {}, false}})[1], 111);  // a device shows when it arrived
}

// DeepSpeed names its receives, and the op behind one waits for it as well. The rank posted the one
// of 1F1 at 112: the message cannot have travelled before.
TEST(MessageTimes, AreThoseOfReceivesThatOpsWaitedForAsWell) {
  const std::vector<traces::TimeSpan> spans = travels({{0, 15, {}, false, 12, false},
                                                       {0, 15, {}, true, 0, false},
                                                       {1, 114, {}, false, 112, false},
                                                       {1, 114, {}, true, 110, false}},
                                                      15, 1);
  EXPECT_EQ(spans[0].start, 12);
  EXPECT_EQ(spans[0].end, 15);
  EXPECT_EQ(spans[1].start, 112);
  EXPECT_EQ(spans[1].end, 114);
}

// In microseconds: 1F0 ended at 110, the rank then posted messages until 119, and had the input of
// 1F1 at 120. That it did not wait says that the input had come while 1F0 ran. If the rank had come
// at 111, it would have waited for 9, which is too long.
TEST(MessageTimes, DoNotTakeForTravelWhatAReceiverPosted) {
  EXPECT_EQ(arrivals({{1, 120, 119}}, 10, 1000)[1], 110);
  EXPECT_EQ(arrivals({{1, 120, 111}}, 10, 100'000)[1], 120);
}

// The receiver was free, but came for the first message 59 after it was ready, and had it at once.
// It took at most that, and as long as the other, for which the rank waited: 58, or 6.
TEST(MessageTimes, OfMessagesThatHadArrivedAreThoseOfOthers) {
  const Receive first{0, 70, 69};
  EXPECT_EQ(arrivals({first, {1, 170, 112, true, 112}}, 70, 1000), (std::vector<Nanos>{68, 170}));
  EXPECT_EQ(arrivals({first, {1, 118, 112, true, 112}}, 70, 1000), (std::vector<Nanos>{16, 118}));
  EXPECT_EQ(arrivals({first}, 70, 1000)[0], 69);
}

// 0F1 had come while rank 1 ran 1F0 until 110; the rank posted messages until it began 1F1 at 150.
// A replay of ops and messages alone would begin it at 110, and miss 40 of 200.
TEST(MessageTimes, LeaveNoTimeUnexplainedThatAReceiverPosted) {
  const ValidSchedule schedule = std::get<ValidSchedule>(
      validate_schedule(traces::parse_schedule_text("0F0 0F1 | 1F0 1F1", "two")));
  const Program program = std::get<Program>(lower(schedule));
  const std::map<std::string, std::pair<Nanos, Nanos>> times{
      {"0F0", {0, 10}},    {"0F1", {10, 20}},      {"1F0", {10, 110}},
      {"1F1", {150, 200}}, {"0SEND_F0", {10, 10}}, {"0SEND_F1", {20, 110}}};
  Timeline timeline;
  for (const Instruction& one : program.instructions) {
    timeline.start.push_back(times.at(to_string(one.op)).first);
    timeline.end.push_back(times.at(to_string(one.op)).second);
  }
  EXPECT_EQ(replay_error(program, timeline), 0);
  for (InstructionId id = 0; id < program.size(); ++id)
    if (is_message(program.instructions[id])) timeline.end[id] = timeline.start[id];
  EXPECT_EQ(replay_error(program, timeline), 0.2);
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
