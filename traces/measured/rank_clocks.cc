// Applies the corrections of clocks to steps and to the activities beside their ops.
#include "traces/measured/rank_clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "sim/ir/error.h"
#include "sim/ir/units.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

/// An op keeps its duration, and its `recorder` is its pipeline rank.
void shift_ops(std::vector<ObservedOp>& ops, const ClockCorrection& clocks) {
  for (ObservedOp& observed : ops) {
    const Nanos shift =
        clocks.shift_at(static_cast<std::int32_t>(observed.recorder), observed.start);
    observed.start += shift;
    observed.end += shift;
  }
}

/// From the first start of a rank's ops to their last end.
TimeSpan extent_of_rank(const std::vector<ObservedOp>& lane) {
  TimeSpan extent{lane.front().start, lane.front().end};
  for (const ObservedOp& observed : lane) widen(extent, observed);
  return extent;
}

/// How far the ops of two ranks in a step are apart, although the second rank needs results of the
/// first; 0 where one clock may have measured both.
Nanos find_distance(const DraftStep& draft, const ClockGaps::Pair& pair) {
  constexpr Nanos kFar = 10;  // times the ops of both ranks: messages take less
  const TimeSpan from = extent_of_rank(draft.lanes[static_cast<std::size_t>(pair.first)]);
  const TimeSpan to = extent_of_rank(draft.lanes[static_cast<std::size_t>(pair.second)]);
  if (to.end + kClockTolerance < from.start) return from.start - to.end;
  return to.start - from.end > kFar * (from.length() + to.length()) ? to.start - from.end : 0;
}

/// Throws Error where clocks differ and nothing can align them: results go from one rank to another
/// and none back, so that the time of messages and the difference of clocks are one number.
void expect_alignable(const DraftStep& draft, const ClockGaps& gaps, const ObservedTrace& trace) {
  const std::string& file = trace.recorders.front().where;
  if (std::all_of(trace.recorders.begin(), trace.recorders.end(),
                  [&](const Recorder& recorder) { return recorder.where == file; }))
    return;
  const std::vector<std::int32_t>& missing = draft.step.missing_ranks;
  const auto is_missing = [&](std::int32_t rank) {
    return std::find(missing.begin(), missing.end(), rank) != missing.end();
  };
  for (const auto& [pair, _] : gaps.pairs()) {
    if (gaps.pairs().contains({pair.second, pair.first})) continue;
    if (is_missing(pair.first) || is_missing(pair.second)) continue;
    const Nanos distance = find_distance(draft, pair);
    if (distance == 0) continue;
    const std::vector<std::string>& doubts = trace.remarks.doubts;
    throw Error(fmt::format(
        "{}: the ops of rank {} are {} apart from those of rank {}, whose results they need: the "
        "clocks of their files differ, and forwards alone cannot align clocks, because no result "
        "comes back; record backwards as well, or all ranks by one clock{}",
        file, pair.second, to_text(distance), pair.first,
        doubts.empty() ? "" : "; " + doubts.front()));
  }
}

}  // namespace

ReplicaClocks find_clocks(const DraftSteps& drafts, std::int32_t ranks,
                          const ObservedTrace& trace) {
  std::map<std::int32_t, ClockGaps> gaps;
  for (const auto& [key, draft] : drafts)
    gaps.try_emplace(key.first, ranks).first->second.add(draft.step.program, draft.step.timeline);
  for (const auto& [key, draft] : drafts) expect_alignable(draft, gaps.at(key.first), trace);
  const auto align = are_on_one_host(trace) ? align_clocks_of_host : align_clocks;
  ReplicaClocks clocks;
  for (const auto& [replica, of_replica] : gaps) clocks.emplace(replica, align(of_replica));
  return clocks;
}

std::optional<std::string> describe_large_shift(const ReplicaClocks& clocks,
                                                const DraftSteps& drafts) {
  for (const auto& [key, draft] : drafts) {
    const TimeSpan extent = extent_of(draft.lanes);
    const ClockCorrection& clock = clocks.at(key.first);
    for (std::int32_t rank = 0; rank < std::ssize(clock.shifts); ++rank) {
      const Nanos shift = std::abs(clock.shift_at(rank, extent.start));
      if (shift <= extent.length() / 4) continue;
      return fmt::format(
          "the clock of rank {} differs by {}, a good part of a step: if that rank began to "
          "record at another step, steps that do not belong together were compared",
          rank, to_text(shift));
    }
  }
  return {};
}

DraftSteps set_clocks(DraftSteps drafts, const ReplicaClocks& clocks) {
  for (auto& [key, draft] : drafts) {
    const ClockCorrection& clock = clocks.at(key.first);
    for (std::vector<ObservedOp>& lane : draft.lanes) shift_ops(lane, clock);
    shift_ops(draft.messages, clock);
  }
  return drafts;
}

std::vector<ObservedActivity> set_clocks(std::vector<ObservedActivity> activities,
                                         const ReplicaClocks& clocks, const RankNumbers& numbers) {
  for (ObservedActivity& activity : activities) {
    const auto clock = clocks.find(activity.replica);
    if (clock == clocks.end()) continue;
    const Nanos shift =
        clock->second.shift_at(numbers.of_recorder[activity.recorder], activity.start);
    activity.start += shift;
    activity.end += shift;
  }
  return activities;
}

}  // namespace bubblescope::traces
