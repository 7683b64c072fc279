// The report for people: totals, one table row per rank, the critical path.
#pragma once

#include <string>

#include "traces/drawings/drawing.h"

namespace bubblescope::traces {

/// makespan     33 ms  ideal 24 ms (work of the busiest rank)
/// lower bound  33 ms  reached: no order of these ops is faster
/// bubble       ratio 27.3 %  overhead 37.5 %  span rate 27.3 %  time 9 ms
///
/// ms        busy    idle  warmup  depend  drain  peak  at   sends
/// rank 0      24       9       0       9      0     4  0F3      8
/// rank 1      24       9       1       6      2     3  1F2     16
/// ...
/// all     72.7 %  27.3 %   4.5 %  13.6 %  9.1 %     4          48
///
/// critical path: 22 ops, 6 hops:  F 11 ms  B 22 ms  messages 0 ms  most on rank 3: 24 ms
///   0F0 → 1F0 → 2F0 → 3F0 … 3B7 (16 ops, 24 ms) → 2B7 → 1B7 → 0B7
/// highest peak: rank 0 holds 4 micro-batches at 0F3 (3 ms)
///
/// Idle time is split by cause (docs/bubble.md); causes that no rank has are left out. `peak`
/// counts the micro-batches whose activations a rank holds at once, first at the op of `at`. Times
/// are rounded for reading: the JSON report is exact. A report without conclusions shows only the
/// makespan.
std::string write_text_report(const StepRecord& record, const DrawOptions& options = {});

/// Writes one line if sensitivity was requested: kinds, then the most sensitive ranks.
///
/// 1 % more of  F +110 us  B +220 us  rank 3 +240 us  rank 2 +210 us  rank 1 +180 us
std::string write_sensitivity_text(const BubbleReport& report);

}  // namespace bubblescope::traces
