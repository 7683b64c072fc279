// The timers of one rank in one line of a training log.
//
//   [Rank 0] time (ms) | fwd: 6567.66 | bwd: 17950.35 | step: 1139.29
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/measured/timer_run.h"

namespace bubblescope::traces {

struct PrintedTimers {
  std::vector<ReportedTime> times;
  std::optional<std::string> unread = {};  ///< why the line is left out
  bool is_megatron = false;                ///< else they are DeepSpeed's
  bool is_pipeline = false;                ///< of DeepSpeed
};

/// Parses what stands before and behind "time (ms) |". The last timer is left out where the line
/// seems to be cut.
PrintedTimers parse_printed_timers(std::string_view head, std::string_view rest);

}  // namespace bubblescope::traces
