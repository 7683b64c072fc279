// Reports on logs with timers, which `analyze` takes where it would take a trace.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace bubblescope::tools {

/// The report on a single log with timers, as text, json or csv; nullopt if the path is of anything
/// else. Throws Error for a damaged log.
std::optional<std::string> report_timer_log(const std::vector<std::string>& paths,
                                            const std::string& format);

}  // namespace bubblescope::tools
