// The bubble report as a table in csv.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/analysis/report.h"

namespace bubblescope::traces {

/// A header row and one row per rank:
///   schedule,rank,busy_ns,idle_ns,first_start_ns,last_end_ns,sends,peak_chunks,peak_activations,
///   peak_units,peak_memory_bytes,busy_F_ns,...,busy_opt_ns,idle_warmup_ns,...,idle_sync_ns
/// and with parts of ops exposed_F.dispatch_ns and so on.
/// peak_memory_bytes is blank if no cost file gives bytes. The causes of idle time are blank if the
/// report has no conclusions.
std::string write_report_csv(const BubbleReport& report);

/// Writes the same table with one more column per member, whose value is the same in every row.
std::string write_report_csv(const BubbleReport& report,
                             const std::vector<std::pair<std::string, std::string>>& members);

}  // namespace bubblescope::traces
