// The mean of several reports about the same pipeline.
#pragma once

#include <span>

#include "sim/analysis/report.h"

namespace bubblescope::inline sim {

/// Every time is the mean over the reports, rounded to nanoseconds such that busy + idle = makespan
/// on every rank and kinds and causes still add up. Ratios are computed from these means; peaks are
/// the highest. The critical path and slack are those of the report with the median makespan. The
/// mean of one report is that report. There must be at least one report, and all must have the same
/// ranks.
BubbleReport average_reports(std::span<const BubbleReport> reports);

/// Returns the index of the report with the median makespan; the lower one of two.
std::size_t find_median_report(std::span<const BubbleReport> reports);

}  // namespace bubblescope::inline sim
