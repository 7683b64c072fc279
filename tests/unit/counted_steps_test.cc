// Steps of ops that state none.
#include "traces/measured/counted_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/timeline.h"
#include "tests/support/chrome_text.h"
#include "tests/support/rank_profile.h"
#include "tests/support/recorded_step.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"
#include "traces/measured/incomplete_steps.h"

namespace bubblescope::tests {
namespace {

struct Slice {
  std::string name;
  int rank;
  int start;
  int duration;
};

constexpr int kPeriod = 100;

/// Steps of two ranks and two micro-batches, which all forwards precede. F takes 10 us and B 20 us,
/// so a step takes 10 + 10 + 10 + 20 + 20 + 20 us = 90 us, and the next one begins 10 us later.
std::vector<Slice> make_steps(int steps) {
  std::vector<Slice> slices;
  for (int step = 0; step < steps; ++step)
    for (const Slice& slice :
         {Slice{"0F0", 0, 0, 10}, Slice{"0F1", 0, 10, 10}, Slice{"1F0", 1, 10, 10},
          Slice{"1F1", 1, 20, 10}, Slice{"1B0", 1, 30, 20}, Slice{"0B0", 0, 50, 20},
          Slice{"1B1", 1, 50, 20}, Slice{"0B1", 0, 70, 20}}) {
      slices.push_back(slice);
      slices.back().start += kPeriod * step;
    }
  return slices;
}

/// Without the n-th slice of this name.
std::vector<Slice> without(std::vector<Slice> slices, const std::string& name, int which) {
  int seen = 0;
  std::erase_if(slices, [&](const Slice& slice) { return slice.name == name && seen++ == which; });
  return slices;
}

traces::AssembledSteps read(const std::vector<Slice>& slices) {
  Events events;
  for (const Slice& slice : slices)
    events.slice(slice.name, slice.rank, 0, slice.start, slice.duration);
  return traces::assemble_steps(traces::parse_trace({"t.json", events.list()}));
}

std::vector<std::int64_t> numbers_of(const traces::AssembledSteps& read) {
  std::vector<std::int64_t> numbers;
  for (const traces::MeasuredStep& step : read.steps) numbers.push_back(step.number);
  return numbers;
}

void expect_true_steps(const std::vector<Slice>& slices, const std::vector<std::int64_t>& numbers,
                       const std::string& what) {
  const traces::AssembledSteps found = read(slices);
  EXPECT_EQ(numbers_of(found), numbers) << what;
  for (const traces::MeasuredStep& step : found.steps)
    EXPECT_EQ(compute_makespan(step.timeline), 90'000) << what << ", step " << step.number;
}

// Counted by themselves, the occurrences of the lost op that follow would be of an earlier step.
TEST(CountedSteps, ALostOpLeavesTheOtherStepsAlone) {
  for (const char* const name : {"0F0", "0F1", "0B1", "1F0", "1B0", "1B1"})
    expect_true_steps(without(make_steps(4), name, 1), {0, 2, 3}, name);
}

TEST(CountedSteps, ALostOpOfEveryRankLeavesTheOtherStepsAlone) {
  expect_true_steps(without(without(make_steps(4), "0F1", 1), "1B1", 1), {0, 2, 3}, "0F1, 1B1");
  expect_true_steps(without(without(make_steps(4), "0F0", 1), "1F0", 1), {0, 2, 3}, "0F0, 1F0");
}

TEST(CountedSteps, FollowTheTimeOfOtherRanksWhereOneBeganLater) {
  std::vector<Slice> slices = make_steps(3);
  std::erase_if(slices, [](const Slice& slice) { return slice.rank == 1 && slice.start < 100; });
  expect_true_steps(slices, {1, 2}, "rank 1 without its first step");
}

/// Steps of four ranks and one micro-batch: F takes 10 us and B 30 us, so a step takes 160 us. The
/// next one begins 10 us later, so that the last rank runs B at 40 us and the first at 130 us, next
/// to which is the last rank's B of the following step.
std::vector<Slice> make_long_steps(int steps) {
  std::vector<Slice> slices;
  for (int step = 0; step < steps; ++step)
    for (int rank = 0; rank < 4; ++rank) {
      slices.push_back({std::to_string(rank) + "F0", rank, 170 * step + 10 * rank, 10});
      slices.push_back({std::to_string(rank) + "B0", rank, 170 * step + 130 - 30 * rank, 30});
    }
  return slices;
}

// Only rank 0, or only rank 3, has all its ops.
TEST(CountedSteps, FollowThePassOfAMicrobatchThroughTheStages) {
  for (const std::string kind : {"F0", "B0"})
    for (const int first : {0, 1}) {
      std::vector<Slice> slices = make_long_steps(6);
      for (int rank = first; rank < first + 3; ++rank)
        slices = without(std::move(slices), std::to_string(rank) + kind, 2);
      const traces::AssembledSteps found = read(slices);
      EXPECT_EQ(numbers_of(found), (std::vector<std::int64_t>{0, 1, 3, 4, 5})) << kind << first;
      for (const traces::MeasuredStep& step : found.steps)
        EXPECT_EQ(compute_makespan(step.timeline), 160'000) << kind << first;
    }
}

std::vector<Slice> from(std::vector<Slice> slices, int start) {
  std::erase_if(slices, [&](const Slice& slice) { return slice.start < start; });
  return slices;
}

std::vector<Slice> until(std::vector<Slice> slices, int start) {
  std::erase_if(slices, [&](const Slice& slice) { return slice.start >= start; });
  return slices;
}

// Counted from the start, the first forwards would be of the step of the backwards before them.
TEST(CountedSteps, OfARecordingThatBeginsWithinOneAreCountedFromTheEnd) {
  for (const int start : {15, 25, 45, 60})
    expect_true_steps(from(make_steps(4), start), {1, 2, 3}, std::to_string(start));
}

// Rank 0 has its ops equally often: the backwards of the first step and the forwards of the last.
TEST(CountedSteps, OfARecordingThatAlsoEndsWithinOneEndWhereNothingIsInFlight) {
  expect_true_steps(until(from(make_steps(4), 25), 345), {1, 2}, "both ranks run the first step");
  std::vector<Slice> slices = until(from(make_steps(4), 60), 345);
  expect_true_steps(slices, {1, 2}, "rank 1 does not");
  std::reverse(slices.begin(), slices.end());
  expect_true_steps(slices, {1, 2}, "rank 1 does not, and is first in the file");
}

/// Forwards of 10 us on two ranks, in steps of as many micro-batches as `sizes` states.
std::vector<Slice> make_forward_steps(const std::vector<int>& sizes) {
  std::vector<Slice> slices;
  for (std::size_t step = 0; step < sizes.size(); ++step)
    for (int at = 0; at < sizes[step]; ++at)
      for (int rank = 0; rank < 2; ++rank)
        slices.push_back({std::to_string(rank) + "F" + std::to_string(at), rank,
                          kPeriod * static_cast<int>(step) + 10 * (at + rank), 10});
  return slices;
}

// At 15 us rank 0 has begun two forwards and rank 1 one. A step of 4 micro-batches takes 50 us.
TEST(CountedSteps, OfForwardsAreCountedFromTheEndIfTheFirstIsCut) {
  const auto numbers_from = [](const std::vector<Slice>& slices) {
    const traces::AssembledSteps found = read(slices);
    for (const traces::MeasuredStep& step : found.steps)
      EXPECT_EQ(compute_makespan(step.timeline), 50'000) << step.number;
    return numbers_of(found);
  };
  EXPECT_EQ(numbers_from(from(make_forward_steps({4, 4, 4, 4}), 15)),
            (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(numbers_from(make_forward_steps({4, 4, 2})), (std::vector<std::int64_t>{0, 1}));
}

/// The same with a file for each of two ranks; the clock of the second is ahead by `apart` us.
traces::AssembledSteps read_files(const std::vector<Slice>& slices, int apart) {
  traces::ObservedTrace trace;
  for (int rank = 0; rank < 2; ++rank) {
    Events events;
    for (const Slice& slice : slices)
      if (slice.rank == rank)
        events.slice(slice.name, rank, 0, slice.start + apart * rank, slice.duration);
    const std::string list = events.list();
    traces::append(trace, traces::parse_trace({"rank" + std::to_string(rank) + ".json", list}));
  }
  return traces::assemble_steps(std::move(trace));
}

TEST(CountedSteps, FollowTheTimesOfAllFilesThatShareAClock) {
  std::vector<Slice> slices = make_steps(3);
  std::erase_if(slices, [](const Slice& slice) { return slice.rank == 1 && slice.start < 100; });
  const traces::AssembledSteps found = read_files(slices, 0);
  EXPECT_EQ(numbers_of(found), (std::vector<std::int64_t>{1, 2}));
  for (const traces::MeasuredStep& step : found.steps)
    EXPECT_EQ(compute_makespan(step.timeline), 90'000);
  EXPECT_EQ(numbers_of(read_files(from(make_steps(4), 25), 0)),
            (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(CountedSteps, OfUnequalNumberInFilesWithoutACommonClockAreAReservation) {
  std::vector<Slice> slices = make_steps(3);
  std::erase_if(slices, [](const Slice& slice) { return slice.rank == 1 && slice.start < 100; });
  const std::vector<std::string> doubts = read_files(slices, 1'000'000).remarks.doubts;
  ASSERT_FALSE(doubts.empty());
  EXPECT_TRUE(doubts[0].starts_with(
      "rank1.json has 2 steps and rank0.json has 3, and nothing states which of them are the "
      "same"))
      << doubts[0];
  for (const std::string& doubt : read_files(make_steps(3), 1'000'000).remarks.doubts)
    EXPECT_EQ(doubt.find("nothing states which"), doubt.npos) << doubt;
}

// The format allows events in any order.
TEST(CountedSteps, FollowTheTimesAndNotTheFile) {
  std::vector<Slice> slices = make_steps(3);
  std::reverse(slices.begin(), slices.end());
  expect_true_steps(slices, {0, 1, 2}, "from the last to the first");
  std::stable_sort(slices.begin(), slices.end(), [](const Slice& left, const Slice& right) {
    return left.duration < right.duration;
  });
  expect_true_steps(slices, {0, 1, 2}, "by duration");
}

/// Profiles of two ranks with two micro-batches in four steps that nothing marks: F and B take 10
/// us, so that a step takes 60 us, and the next one begins 40 us later. Rank 0 has lost the forward
/// of this micro-batch in the second step; the recording of rank 1 begins with this one.
traces::ObservedTrace run_without_marks(int lost, int first = 0) {
  traces::ObservedTrace trace;
  for (int rank = 0; rank < 2; ++rank) {
    RankProfile profile(rank);
    const std::string stage = "PP:" + std::to_string(rank);
    for (int step = rank == 1 ? first : 0; step < 4; ++step)
      for (int microbatch = 0; microbatch < 2; ++microbatch) {
        const std::string number = std::to_string(microbatch);
        const int forward = 100 * step + 10 * (rank + microbatch);
        const int backward = 100 * step + 40 - 10 * (rank - microbatch);
        if (rank == 1 || step != 1 || microbatch != lost)
          profile.annotation(stage + "F" + number, forward, 10).call("aten::mm", forward, 10);
        profile.annotation(stage + "B" + number, backward, 10).gradient(backward, 10);
      }
    traces::append(trace, profile.read());
  }
  return trace;
}

TEST(CountedSteps, ALostOpOfAProfileLeavesTheOtherStepsAlone) {
  for (const int lost : {0, 1}) {
    const traces::AssembledSteps found = traces::assemble_steps(run_without_marks(lost));
    EXPECT_EQ(numbers_of(found), (std::vector<std::int64_t>{0, 2, 3})) << lost;
    for (const traces::MeasuredStep& step : found.steps) {
      EXPECT_EQ(compute_makespan(step.timeline), 60'000) << lost;
      EXPECT_TRUE(step.may_mix_steps);
    }
  }
}

// Counted by themselves, the first step of rank 1 would be that of rank 0 with another clock.
TEST(CountedSteps, OfProfilesOfOneHostThatBeginAtOtherStepsAgree) {
  const traces::AssembledSteps found = traces::assemble_steps(run_without_marks(-1, 1));
  EXPECT_EQ(numbers_of(found), (std::vector<std::int64_t>{1, 2, 3}));
  for (const traces::MeasuredStep& step : found.steps)
    EXPECT_EQ(compute_makespan(step.timeline), 60'000);
  EXPECT_TRUE(found.remarks.doubts.empty()) << found.remarks.doubts.front();
}

TEST(CountedSteps, MessagesGoWithTheOpsBesideThem) {
  // The first of two steps 0F0 0B0 has lost its forward.
  const auto message = [](OpKind kind, Nanos start, Nanos end) {
    traces::ObservedOp observed;
    observed.op.kind = kind;
    observed.start = start;
    observed.end = end;
    return observed;
  };
  std::vector<traces::ObservedOp> ops{
      message(OpKind::kBackward, 20, 30),    message(OpKind::kSendBackward, 30, 31),
      message(OpKind::kRecvForward, 35, 40), message(OpKind::kForward, 40, 50),
      message(OpKind::kBackward, 60, 70),    message(OpKind::kSendBackward, 70, 71)};
  std::vector<std::int64_t> steps;
  for (const traces::ObservedOp& op :
       traces::with_counted_steps(std::move(ops), {0, 1, 2, 3, 4, 5}))
    steps.push_back(op.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{0, 0, 1, 1, 1, 1}));
}

/// Steps of which those that are listed have a gap as long as the step before their last op.
traces::AssembledSteps with_gaps(int steps, const std::vector<int>& gaps, bool may_mix_steps) {
  traces::AssembledSteps read;
  for (int number = 0; number < steps; ++number) {
    UniformCost cost;
    cost.forward = 100'000;
    cost.backward = 100'000;
    RecordedStep step = record_step("1f1b", {.ranks = 2, .microbatches = 2}, cost);
    const Nanos end = compute_makespan(step.timeline);
    if (std::find(gaps.begin(), gaps.end(), number) != gaps.end())
      for (std::size_t id = 0; id < step.timeline.end.size(); ++id)
        if (step.timeline.end[id] == end) {
          step.timeline.start[id] += end;
          step.timeline.end[id] += end;
        }
    traces::MeasuredStep measured{"", step.schedule, step.program, step.timeline};
    measured.number = number;
    measured.may_mix_steps = may_mix_steps;
    read.steps.push_back(std::move(measured));
  }
  return read;
}

// The replay has no gap, so it misses these steps by half.
TEST(UnexplainedSteps, AreLeftOutAndNamedWhereTheirOpsMayBeOfTwoSteps) {
  const traces::AssembledSteps kept =
      traces::separate_unexplained_steps(with_gaps(8, {3, 6}, true));
  EXPECT_EQ(numbers_of(kept), (std::vector<std::int64_t>{0, 1, 2, 4, 5, 7}));
  ASSERT_EQ(kept.remarks.left_out.size(), 1u);
  EXPECT_TRUE(kept.remarks.left_out[0].starts_with(
      "left out: steps 3, 6: their ops may come from two steps, because the trace states no steps "
      "and others lack ops: a replay misses them by up to 50.0 %; state the step of every op"))
      << kept.remarks.left_out[0];
  EXPECT_TRUE(kept.remarks.faults.empty());
}

TEST(UnexplainedSteps, AreAFaultIfTheyAreMany) {
  const traces::AssembledSteps kept = traces::separate_unexplained_steps(with_gaps(3, {1}, true));
  EXPECT_EQ(kept.steps.size(), 3u);
  ASSERT_EQ(kept.remarks.faults.size(), 1u);
  EXPECT_TRUE(kept.remarks.faults[0].starts_with(
      "1 of 3 steps is not explained by its ops: its ops may come from two steps"))
      << kept.remarks.faults[0];
}

// A pause is part of a step whose ops are known.
TEST(UnexplainedSteps, StayWhereTheirOpsAreKnown) {
  EXPECT_EQ(traces::separate_unexplained_steps(with_gaps(8, {3}, false)).steps.size(), 8u);
}

bool mixes_steps(const std::vector<Slice>& slices) {
  const traces::AssembledSteps found = read(slices);
  return found.steps.front().may_mix_steps;
}

TEST(CountedSteps, MayMixWhereOneLacksAnOp) {
  EXPECT_FALSE(mixes_steps(make_steps(3)));
  EXPECT_TRUE(mixes_steps(without(make_steps(3), "0F1", 1)));
}

}  // namespace
}  // namespace bubblescope::tests
