// The mean of several reports on the same pipeline.
#pragma once

#include <span>

#include "sim/analysis/report.h"

namespace bubblescope {

/// Every time is the mean over the reports, to the nanosecond; on every rank busy + idle =
/// makespan, and kinds and causes add up, as in each of them. Ratios are ratios of these means;
/// peaks are the highest. Critical path and slack are those of the report of median makespan. The
/// mean of one report is that report. There is at least one, and all have as many ranks.
BubbleReport mean_of(std::span<const BubbleReport> reports);

/// The index of the report whose makespan is the median; the lower one of two.
std::size_t median_report(std::span<const BubbleReport> reports);

}  // namespace bubblescope
