// Applies the corrections of clocks to steps and to the activities beside their ops.
#include "traces/measured/rank_clocks.h"

#include <fmt/format.h>

#include <cstdlib>

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

}  // namespace

ReplicaClocks find_clocks(const DraftSteps& drafts, std::int32_t ranks,
                          const ObservedTrace& trace) {
  std::map<std::int32_t, ClockGaps> gaps;
  for (const auto& [key, draft] : drafts)
    gaps.try_emplace(key.first, ranks).first->second.add(draft.step.program, draft.step.timeline);
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
