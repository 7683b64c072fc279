// The report of a plain step from what its walk has noted.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sim/analysis/plain_bound.h"
#include "sim/analysis/plain_rank.h"
#include "sim/analysis/plain_stages.h"
#include "sim/analysis/plain_walk.h"
#include "sim/analysis/report.h"

namespace bubblescope::inline sim {

/// A report with nothing but a row per rank.
BubbleReport begin_plain_report(const Schedule& schedule, const MemoryModel& memory);

/// Writes how a rank spent its time between its ops.
void report_waits(const PlainRank& rank, RankReport& report);

/// Adds the times of ops by their kinds to the work of a rank.
void add_work(const std::array<Nanos, kPlainKinds>& busy, RankReport& report);

/// Adds what follows from the waits and the work of all ranks.
BubbleReport complete_plain_report(BubbleReport report, std::span<const PlainStage> stages);

/// The backwards that were split in a walk which has run all ops.
template <class Runner>
SplitBackwards list_backwards(const PlainWalk<Runner>& walk, std::int32_t microbatches) {
  SplitBackwards split;
  split.is_split.reserve(walk.stages().size() * static_cast<std::size_t>(microbatches));
  for (const PlainStage& stage : walk.stages())
    for (std::int32_t microbatch = 0; microbatch < microbatches; ++microbatch)
      split.is_split.push_back(static_cast<std::uint8_t>(walk.is_split(stage, microbatch)));
  return split;
}

}  // namespace bubblescope::inline sim
