// Perfetto's protobuf, read back like in a viewer and compared with the timeline.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "sim/analysis/idle.h"
#include "sim/model/schedule_def.h"
#include "tests/support/perfetto_reader.h"
#include "tests/support/recorded_step.h"
#include "traces/text/palette.h"
#include "traces/timelines/trace_threads.h"

namespace bubblescope::tests {
namespace {

/// A step with several messages on one link at a time.
UniformCost slow_messages() { return uneven_cost(2'500'011); }

PerfettoFile read_back(const RecordedStep& step) {
  return read_perfetto(write_as("perfetto", step));
}

using Shown = std::tuple<std::string, std::string, Nanos, Nanos>;  ///< track, name, start, end

std::multiset<Shown> slices_below(const PerfettoFile& file, const std::string& process) {
  std::multiset<Shown> shown;
  for (const ReadSlice& slice : file.slices) {
    const std::string path = file.path(slice.track);
    if (path.starts_with(process)) shown.emplace(path, slice.name, slice.start, slice.end);
  }
  return shown;
}

/// The slices that follow from the timeline: the lanes, and below them the idle gaps.
std::multiset<Shown> expected_slices(const RecordedStep& step) {
  std::multiset<Shown> shown;
  const traces::TraceThreads threads = traces::assign_threads(step.program, step.timeline);
  for (const traces::TraceSlice& slice : threads.slices) {
    const traces::TraceThread& thread = threads.threads[slice.thread];
    const Instruction& instruction = step.program.instructions[slice.id];
    shown.emplace("rank " + std::to_string(thread.rank) + "/" + thread.name,
                  (instruction.role == Role::kWait ? "wait " : "") + to_string(instruction.op),
                  slice.start, slice.end);
  }
  for (const IdleGap& gap : find_idle_gaps(step.program, step.timeline))
    shown.emplace("rank " + std::to_string(gap.rank) + "/idle", name(gap.cause), gap.start,
                  gap.end);
  return shown;
}

std::int64_t integer(const ReadSlice& slice, const std::string& key) {
  return std::get<std::int64_t>(slice.annotations.at(key));
}

TEST(Perfetto, SaysOfEveryScheduleWhatItsTimelineSays) {
  for (const RecordedStep& step : many_steps(slow_messages()))
    EXPECT_EQ(slices_below(read_back(step), "rank "), expected_slices(step)) << step.schedule->name;
}

TEST(Perfetto, SaysStageMicrobatchAndSliceOfEveryOp) {
  for (const RecordedStep& step : many_steps(slow_messages())) {
    std::size_t ops = 0;
    for (const ReadSlice& slice : read_back(step).slices) {
      if (!slice.annotations.contains("stage") || slice.category == "wait") continue;
      Op op{static_cast<std::int32_t>(integer(slice, "stage")), 0};
      if (slice.annotations.contains("microbatch"))
        op.microbatch = static_cast<std::int32_t>(integer(slice, "microbatch"));
      if (slice.annotations.contains("slice"))
        op.slice = static_cast<std::int16_t>(integer(slice, "slice"));
      for (int kind = 0; kind < kOpKinds; ++kind) {
        op.kind = static_cast<OpKind>(kind);
        if (to_string(op) == slice.name) break;
      }
      EXPECT_EQ(to_string(op), slice.name);
      EXPECT_EQ(traces::style_of(op.kind).category, slice.category);
      ++ops;
    }
    EXPECT_GE(ops, static_cast<std::size_t>(step.schedule->op_count()));
  }
}

TEST(Perfetto, LeadsEveryMessageFromItsOpToItsReceiver) {
  for (const RecordedStep& step : many_steps(slow_messages())) {
    const PerfettoFile file = read_back(step);
    std::map<std::uint64_t, std::vector<const ReadSlice*>> ways;
    std::map<std::uint64_t, const ReadSlice*> ends;
    std::size_t messages = 0;
    for (const ReadSlice& slice : file.slices) {
      for (const std::uint64_t flow : slice.flows) ways[flow].push_back(&slice);
      for (const std::uint64_t flow : slice.ended_flows)
        EXPECT_TRUE(ends.emplace(flow, &slice).second) << "a flow ends twice";
      messages += slice.category == "p2p" && file.path(slice.track).starts_with("rank ");
    }
    EXPECT_EQ(ways.size(), ends.size());
    EXPECT_LE(ways.size(), messages);
    for (const auto& [flow, way] : ways) {
      const ReadSlice& message = *way.back();
      EXPECT_EQ(message.category, "p2p");
      EXPECT_LE(message.end, ends.at(flow)->start);
      EXPECT_TRUE(file.path(ends.at(flow)->track)
                      .starts_with("rank " + std::to_string(integer(message, "Dst Rank"))));
      for (std::size_t at = 1; at < way.size(); ++at) EXPECT_LE(way[at - 1]->end, way[at]->start);
    }
  }
}

TEST(Perfetto, CountsWhatEveryRankHolds) {
  for (const RecordedStep& step : many_steps(slow_messages())) {
    const PerfettoFile file = read_back(step);
    std::map<std::string, double> highest;
    std::map<std::string, double> last;
    for (const ReadCount& count : file.counts) {
      double& peak = highest[file.path(count.track)];
      peak = std::max(peak, count.value);
      last[file.path(count.track)] = count.value;
    }
    for (std::size_t rank = 0; rank < step.report.ranks.size(); ++rank) {
      const std::string track = "rank " + std::to_string(rank) + "/held activations";
      EXPECT_DOUBLE_EQ(highest.at(track), step.report.ranks[rank].peak.chunks);
      const bool gives_back = !step.schedule->forward_only;
      EXPECT_TRUE(!gives_back || last.at(track) == 0) << track;
    }
  }
}

TEST(Perfetto, ShowsTheCriticalPathOnATrackOfItsOwn) {
  for (const RecordedStep& step : many_steps(slow_messages())) {
    const PerfettoFile file = read_back(step);
    std::vector<std::string> path;
    std::vector<std::string> expected;
    for (const ReadSlice& slice : file.slices)
      if (file.path(slice.track).ends_with("/critical path")) path.push_back(slice.name);
    for (const InstructionId id : step.report.critical_path)
      expected.push_back(to_string(step.program.instructions[id].op));
    EXPECT_EQ(path, expected) << step.schedule->name;
  }
}

TEST(Perfetto, SaysWhatTheStepWasMadeWithAndCameTo) {
  const RecordedStep step = record_step("1f1b", {.ranks = 4, .microbatches = 8}, slow_messages());
  const PerfettoFile file =
      read_perfetto(write_report_set("perfetto", {"bubblescope x", {{"1f1b", step.record()}}}));
  const ReadSlice& whole = file.slices.at(0);
  EXPECT_EQ(whole.end - whole.start, step.report.makespan);
  EXPECT_EQ(integer(whole, "makespan_ns"), step.report.makespan);
  EXPECT_EQ(std::get<std::string>(whole.annotations.at("command")), "bubblescope x");
  EXPECT_EQ(std::get<std::string>(whole.annotations.at("p2p_mode")), "dataflow");
}

TEST(Perfetto, KeepsSeveralStepsApart) {
  const RecordedStep one = record_step("gpipe", {.ranks = 2, .microbatches = 4}, slow_messages());
  const RecordedStep two = record_step("1f1b", {.ranks = 2, .microbatches = 4}, slow_messages());
  const PerfettoFile file = read_perfetto(
      write_report_set("perfetto", {"", {{"gpipe", one.record()}, {"1f1b", two.record()}}}));
  EXPECT_EQ(slices_below(file, "gpipe: rank ").size(), expected_slices(one).size());
  EXPECT_EQ(slices_below(file, "1f1b: rank ").size(), expected_slices(two).size());
  std::set<std::int64_t> places;
  for (const auto& [uuid, track] : file.tracks)
    EXPECT_TRUE(track.process == 0 || places.insert(track.place).second) << "two at one place";
  EXPECT_EQ(places.size(), 6u);  // two ranks and the step itself, twice
}

// Measured steps may begin before their own zero, a time that the viewer does not have.
TEST(Perfetto, MovesAStepThatBeginsBeforeZero) {
  RecordedStep step = record_text("0F0 0B0 | 1F0 1B0");
  for (Nanos& time : step.timeline.start) time -= 700;
  for (Nanos& time : step.timeline.end) time -= 700;
  const PerfettoFile file = read_back(step);
  EXPECT_EQ(integer(file.slices.at(0), "shifted_by_ns"), 700);
  for (const ReadSlice& slice : file.slices) EXPECT_GE(slice.start, 0);
  EXPECT_EQ(file.slices.at(0).end, step.report.makespan);
}

TEST(Perfetto, IsOrderedByTimeOnTheLanes) {
  const RecordedStep step = record_step("zb-v", {.ranks = 4, .chunks = 2, .microbatches = 8});
  const PerfettoFile file = read_back(step);
  Nanos last = 0;
  std::int64_t ops = 0;
  for (const ReadSlice& slice : file.slices) {
    if (!slice.annotations.contains("stage")) continue;
    EXPECT_GE(slice.start, last);
    last = slice.start;
    ++ops;
  }
  EXPECT_GE(ops, step.schedule->op_count());
}

TEST(PerfettoReader, RefusesWhatAViewerWouldRefuse) {
  const std::string whole = write_as("perfetto", record_text("0F0 0B0 | 1F0 1B0"));
  EXPECT_NO_THROW(read_perfetto(whole));
  EXPECT_THROW(read_perfetto(whole.substr(0, whole.size() - 1)), std::runtime_error);
  EXPECT_THROW(read_perfetto(whole.substr(1)), std::exception);
}

}  // namespace
}  // namespace bubblescope::tests
