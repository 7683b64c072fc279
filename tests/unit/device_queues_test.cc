// Tests messages whose kernels a profile shows: what they wait for, how long they travel, and that
// a replay of them takes as long as the step.
#include "traces/measured/device_queues.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/analysis/replay.h"
#include "sim/ir/error.h"
#include "tests/support/device_profile.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

constexpr int kComputing = 70;  ///< streams of the device
constexpr int kReducing = 71;
constexpr int kSending = 72;
constexpr const char* kSendRecv = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
constexpr const char* kAllReduce = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)";

/// When a kernel runs, in microseconds.
struct Span {
  int start = 0;
  int end = 0;
};

/// The profile of a rank whose host is far ahead: everything is launched in the order in which it
/// is added, 10 µs apart.
class Rank {
 public:
  explicit Rank(int rank) : profile_(rank) {}

  Rank& op(const std::string& name, Span span) {
    profile_.annotation("PP:" + name, host_, 4);
    profile_.kernel("gemm", host_ + 1, kComputing, span.start, span.end - span.start);
    return next();
  }
  /// An annotated message.
  Rank& message(const std::string& name, Span span) {
    profile_.annotation("PP:" + name, host_, 4);
    profile_.call(name.find("SEND") != name.npos ? "c10d::send" : "c10d::recv_", host_ + 1, 1);
    return carry(span);
  }
  /// Messages without names, posted together.
  Rank& posted(const std::vector<std::string>& calls, Span span) {
    for (const std::string& call : calls) profile_.call(call, host_, 1);
    return carry(span);
  }
  Rank& reduction(Span span) {
    profile_.kernel(kAllReduce, host_ - 8, kReducing, span.start, span.end - span.start);
    return *this;
  }

  traces::ObservedTrace read() const { return profile_.read(); }

 private:
  Rank& carry(Span span) {
    profile_.launch_on(1).kernel(kSendRecv, host_ + 2, kSending, span.start, span.end - span.start);
    profile_.launch_on(2);
    return next();
  }
  Rank& next() {
    host_ += 10;
    return *this;
  }

  DeviceProfile profile_;
  int host_ = 0;
};

traces::MeasuredStep assemble(const Rank& first, const Rank& last) {
  traces::ObservedTrace trace = first.read();
  traces::append(trace, last.read());
  return traces::assemble_steps(trace).steps.at(0);
}

/// From when to when the result of an op travels, in microseconds from the first op on.
Span transit(const traces::MeasuredStep& step, const std::string& send) {
  for (InstructionId id = 0; id < step.program.size(); ++id)
    if (is_message(step.program.instructions[id]) &&
        to_string(step.program.instructions[id]) == send)
      return {static_cast<int>(step.timeline.start[id] / 1000),
              static_cast<int>(step.timeline.end[id] / 1000)};
  throw Error("no message " + send);
}

bool has_queues(const traces::MeasuredStep& step) {
  return step.program.lanes.size() > static_cast<std::size_t>(step.program.ranks);
}

// The send lies in a buffer when the receiver waits for it, and the gradient's receive was launched
// after it.
TEST(DeviceQueues, AMessageTravelsOnceBothEndsHaveStarted) {
  const traces::MeasuredStep step = assemble(Rank(0)
                                                 .op("0F0", {100, 200})
                                                 .message("0SEND_F0", {200, 210})
                                                 .message("0RECV_B0", {210, 700})
                                                 .op("0B0", {700, 900}),
                                             Rank(1)
                                                 .message("1RECV_F0", {50, 400})
                                                 .op("1F0", {400, 500})
                                                 .op("1B0", {500, 650})
                                                 .message("1SEND_B0", {650, 660}));
  EXPECT_TRUE(has_queues(step));
  EXPECT_EQ(transit(step, "0SEND_F0").start, 100);
  EXPECT_EQ(transit(step, "0SEND_F0").end, 300);
  EXPECT_EQ(transit(step, "1SEND_B0").start, 550);
  EXPECT_EQ(transit(step, "1SEND_B0").end, 600);
  EXPECT_EQ(compute_makespan(step.timeline), 800'000);
  EXPECT_EQ(replay_error(step.program, step.timeline), 0);
}

/// 0F1 has been there since 300 µs, but its receiver launches the receive after 1B0 and the send
/// of that, which waits for nothing. `late` delays the receive beyond what it waits for.
traces::MeasuredStep late_receive(int late) {
  return assemble(Rank(0)
                      .op("0F0", {100, 200})
                      .message("0SEND_F0", {200, 210})
                      .op("0F1", {210, 300})
                      .message("0SEND_F1", {300, 1000 + late})
                      .message("0RECV_B0", {1000 + late, 1050 + late})
                      .op("0B0", {1050 + late, 1250 + late})
                      .message("0RECV_B1", {1250 + late, 1500 + late})
                      .op("0B1", {1500 + late, 1600 + late}),
                  Rank(1)
                      .message("1RECV_F0", {50, 400})
                      .op("1F0", {400, 500})
                      .op("1B0", {500, 880})
                      .message("1SEND_B0", {880, 900})
                      .message("1RECV_F1", {900 + late, 1000 + late})
                      .op("1F1", {1000 + late, 1100 + late})
                      .op("1B1", {1100 + late, 1400 + late})
                      .message("1SEND_B1", {1400 + late, 1410 + late}));
}

TEST(DeviceQueues, AMessageWaitsForWhatItsReceiverLaunchedBefore) {
  const traces::MeasuredStep step = late_receive(0);
  EXPECT_EQ(transit(step, "0SEND_F1").start, 800);
  EXPECT_EQ(transit(step, "0SEND_F1").end, 900);
  EXPECT_EQ(compute_makespan(step.timeline), 1'500'000);
  EXPECT_EQ(replay_error(step.program, step.timeline), 0);
}

// 1 ms of 2.5 in which nothing explains why the receive had not started.
TEST(DeviceQueues, TimeThatNothingExplainsStaysTheReplayError) {
  const traces::MeasuredStep step = late_receive(1000);
  EXPECT_EQ(compute_makespan(step.timeline), 2'500'000);
  EXPECT_DOUBLE_EQ(replay_error(step.program, step.timeline), 0.4);
}

// Rank 0 posts the send of 0F1 with the receive of 1B0, rank 1 the send of 1B0 with the receive of
// 0F1. Both kernels wait for the later one, and each op for the whole kernel that brings its input.
TEST(DeviceQueues, MessagesOfOneKernelAreDoneTogether) {
  const traces::MeasuredStep step = assemble(Rank(0)
                                                 .op("0F0", {100, 200})
                                                 .posted({"c10d::send"}, {200, 210})
                                                 .op("0F1", {210, 300})
                                                 .posted({"c10d::send", "c10d::recv_"}, {300, 950})
                                                 .op("0B0", {950, 1150})
                                                 .posted({"c10d::recv_"}, {1150, 1500})
                                                 .op("0B1", {1500, 1600}),
                                             Rank(1)
                                                 .posted({"c10d::recv_"}, {50, 400})
                                                 .op("1F0", {400, 500})
                                                 .op("1B0", {500, 880})
                                                 .posted({"c10d::send", "c10d::recv_"}, {880, 1000})
                                                 .op("1F1", {1000, 1100})
                                                 .op("1B1", {1100, 1400})
                                                 .posted({"c10d::send"}, {1400, 1410}));
  EXPECT_TRUE(has_queues(step));
  EXPECT_EQ(transit(step, "0SEND_F1").start, 780);
  EXPECT_EQ(transit(step, "0SEND_F1").end, 900);
  EXPECT_EQ(transit(step, "1SEND_B0").start, 780);
  EXPECT_EQ(transit(step, "1SEND_B0").end, 850);
  EXPECT_EQ(replay_error(step.program, step.timeline), 0);
}

// A message of which one end is not shown may have waited for anything.
TEST(DeviceQueues, NeedBothEndsOfEveryMessage) {
  const traces::MeasuredStep step =
      assemble(Rank(0).op("0F0", {100, 200}).message("0SEND_F0", {200, 210}).op("0B0", {700, 900}),
               Rank(1)
                   .message("1RECV_F0", {50, 400})
                   .op("1F0", {400, 500})
                   .op("1B0", {500, 650})
                   .message("1SEND_B0", {650, 660}));
  EXPECT_FALSE(has_queues(step));
  EXPECT_EQ(transit(step, "0SEND_F0").end, 300);
}

// DDP waits for the reduction of all gradients before the last backward returns.
TEST(DeviceQueues, AnOpEndsWithTheReductionThatItsResultWaitsFor) {
  const traces::MeasuredStep step = assemble(Rank(0)
                                                 .op("0F0", {100, 200})
                                                 .message("0SEND_F0", {200, 210})
                                                 .message("0RECV_B0", {210, 1700})
                                                 .op("0B0", {1700, 1900}),
                                             Rank(1)
                                                 .message("1RECV_F0", {50, 400})
                                                 .op("1F0", {400, 500})
                                                 .op("1B0", {500, 650})
                                                 .reduction({640, 1600})
                                                 .message("1SEND_B0", {1610, 1620}));
  EXPECT_EQ(transit(step, "1SEND_B0").start, 1510);
  EXPECT_EQ(transit(step, "1SEND_B0").end, 1600);
  EXPECT_LT(replay_error(step.program, step.timeline), 0.01);
}

}  // namespace
}  // namespace bubblescope::tests
