// Tests what is said of steps that cannot have run as they were recorded, and of their near misses.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/chrome_text.h"
#include "tests/support/trace_refusal.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

std::vector<traces::MeasuredStep> read(const std::string& text) {
  return traces::assemble_steps(traces::parse_trace({"t.json", text})).steps;
}

/// A step of 1F1B on two ranks, whose processes have these numbers.
std::string on_processes(int first, int second, bool has_stages) {
  Events events;
  const auto add = [&](const char kind, int stage, int microbatch, int start, int duration) {
    const std::string name =
        has_stages ? std::to_string(stage) + kind + std::to_string(microbatch)
                   : (kind == 'F' ? "Forward " : "Backward ") + std::to_string(microbatch);
    events.slice(name, stage == 0 ? first : second, 0, start, duration);
  };
  add('F', 0, 0, 0, 10);
  add('F', 0, 1, 10, 10);
  add('F', 1, 0, 10, 10);
  add('B', 1, 0, 20, 20);
  add('F', 1, 1, 40, 10);
  add('B', 0, 0, 40, 20);
  add('B', 1, 1, 50, 20);
  add('B', 0, 1, 70, 20);
  return events.list();
}

// Numbers of processes are those of a system.
TEST(RefusedSteps, StagesOrderRanksBeforeNumbersOfProcesses) {
  const std::vector<traces::MeasuredStep> steps = read(on_processes(9, 8, true));
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].schedule->rank_of(0, 0), 0);
  EXPECT_EQ(steps[0].schedule->rank_of(1, 0), 1);
  const std::string said = refusal(on_processes(9, 8, false));
  EXPECT_NE(said.find("the numbers of the processes gave their order"), std::string::npos) << said;
  EXPECT_EQ(refusal(on_processes(8, 9, false)), "");
}

// Rank 0 ends a chunk before it begins the other, which needs it, in a loop as in a V.
TEST(RefusedSteps, ChunksMayBePlacedInAnotherWay) {
  Events events;
  const auto add = [&](const char* name, int rank, int chunk, int start) {
    events.slice(name, rank, 0, start, 10,
                 R"("step":0,"microbatch":0,"chunk":)" + std::to_string(chunk) + R"(,"pp_rank":)" +
                     std::to_string(rank));
  };
  add("forward", 0, 0, 0);
  add("backward", 0, 0, 10);
  add("forward", 0, 1, 20);
  add("backward", 0, 1, 30);
  add("forward", 1, 0, 0);
  add("forward", 1, 1, 10);
  add("backward", 1, 1, 20);
  add("backward", 1, 0, 30);
  const std::string said = refusal(events.list());
  EXPECT_NE(said.find("chunks count as placed in a loop"), std::string::npos) << said;
}

TEST(RefusedSteps, NameTheFormatThatTheyAreIn) {
  const std::string asynchronous =
      refusal(R"([{"ph":"b","id":1,"name":"0F0","pid":0,"tid":0,"ts":1},)"
              R"({"ph":"e","id":1,"name":"0F0","pid":0,"tid":0,"ts":2}])");
  EXPECT_NE(asynchronous.find("1 asynchronous events"), std::string::npos) << asynchronous;
  const std::string perfetto = refusal(std::string("\n\x53\x00\x4c", 4));
  EXPECT_NE(perfetto.find("looks like a trace of Perfetto"), std::string::npos) << perfetto;
  EXPECT_NE(perfetto.find("*.xplane.pb"), std::string::npos) << perfetto;
  EXPECT_NE(refusal("\nforward 3\n").find("is in no format"), std::string::npos);
}

// Schedules are corrected, and steps recorded again.
TEST(RefusedSteps, RefusesTheMiddleOfAStepInWordsForRecordings) {
  Events events;
  events.slice("0B0", 0, 0, 0, 10).slice("0F0", 0, 0, 10, 10);
  const std::string said = refusal(events.list());
  EXPECT_NE(said.find("0B0 runs before its forward 0F0: the recording begins or ends within"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("move it"), std::string::npos) << said;
}

TEST(RefusedSteps, NameTheFirstDoubtAlone) {
  Events events;
  events.slice("0B0", 0, 0, 0, 10).slice("0F0", 0, 0, 10, 10);
  const std::string text = events.list();
  traces::ObservedTrace trace = traces::parse_trace({"t.json", text});
  trace.remarks.doubts = {"the order is a guess", "so are the times"};
  std::string said;
  try {
    traces::assemble_steps(std::move(trace));
  } catch (const Error& error) {
    said = error.what();
  }
  EXPECT_TRUE(said.ends_with("; record whole steps; the order is a guess")) << said;
}

TEST(RefusedSteps, TellsWhyAnOpRunsTwice) {
  const std::string step = R"("step":0)";
  const auto twice = [&](int start, int duration) {
    Events events;
    events.slice("0F0", 0, 0, 0, 10, step)
        .slice("0F0", 0, 0, start, duration, step)
        .slice("0B0", 0, 0, 40, 20, step);
    return refusal(events.list());
  };
  EXPECT_NE(twice(2, 5).find("slices of one op are nested"), std::string::npos) << twice(2, 5);
  EXPECT_NE(twice(0, 10).find("slices of one op are nested"), std::string::npos) << twice(0, 10);
  EXPECT_NE(twice(10, 10).find("slices of single layers"), std::string::npos) << twice(10, 10);
}

// A trace that names weight gradients and no input gradients calls the latter backwards.
TEST(RefusedSteps, ABackwardBesideAWeightGradientIsAnInputGradient) {
  const std::string arguments = R"("microbatch":0,"step":0)";
  Events events;
  events.slice("forward", 0, 0, 0, 10, arguments)
      .slice("backward", 0, 0, 10, 10, arguments)
      .slice("wgrad", 0, 0, 20, 10, arguments);
  const std::vector<traces::MeasuredStep> steps = read(events.list());
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].schedule->order[0][1].kind, OpKind::kInputGrad);
  // Beside an input gradient of its own name it is whole, so that its weight gradient repeats it.
  const std::string further = R"("microbatch":1,"step":0)";
  events.slice("forward", 0, 0, 30, 10, further)
      .slice("dgrad", 0, 0, 40, 10, further)
      .slice("wgrad", 0, 0, 50, 10, further);
  const std::string said = refusal(events.list());
  EXPECT_NE(said.find("0W0 repeats the work of 0B0"), std::string::npos) << said;
}

}  // namespace
}  // namespace bubblescope::tests
