// Tells traces from other files by their first bytes.
#pragma once

#include <string_view>

namespace bubblescope::traces {

/// Whether a text has what only traces have at their beginning: events of a profiler, a database,
/// or times that were written here. It may still be damaged, or hold no pipeline.
bool looks_like_trace(std::string_view text);

}  // namespace bubblescope::traces
