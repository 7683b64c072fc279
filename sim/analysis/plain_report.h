// The report of a plain step from what its walk has noted.
#pragma once

#include <array>
#include <span>

#include "sim/analysis/plain_rank.h"
#include "sim/analysis/plain_stages.h"
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

}  // namespace bubblescope::inline sim
