// Reports on logs with timers, which `analyze` takes where it would take a trace.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/measured/timer_log.h"

namespace bubblescope::tools {

/// Reads a log with timers; nullopt if the path is of anything else. Throws Error for a damaged
/// log.
std::optional<traces::TimerLog> read_timer_log(const std::string& path);

/// The report on logs with timers, as text (one log after another), json or csv (of one log);
/// nullopt if no path is of a log. Throws Error for a damaged log, and where logs are given
/// together with something else.
std::optional<std::string> report_timer_logs(const std::vector<std::string>& paths,
                                             const std::string& format);

}  // namespace bubblescope::tools
