// Reports on logs with timers, which `analyze` takes where it would take a trace.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/commands/stream_texts.h"
#include "tools/flags/output_format.h"
#include "traces/measured/timer_log.h"

namespace bubblescope::tools {

/// Reads a log with timers; nullopt if the path is of a trace, or of anything else that is no text.
/// `streams` has the texts of the paths that are streams. Throws Error for a damaged log, and for
/// one without timers or of several writers.
std::optional<traces::TimerLog> read_timer_log(const std::string& path, const StreamTexts& streams);

/// The report on logs with timers, as text (one log after another), json or csv (of one log);
/// nullopt if no path is of a log. A folder of logs counts as its files. Throws Error for a damaged
/// log, and where logs are given together with something else.
std::optional<std::string> report_timer_logs(const std::vector<std::string>& paths,
                                             OutputFormat format, const StreamTexts& streams);

}  // namespace bubblescope::tools
