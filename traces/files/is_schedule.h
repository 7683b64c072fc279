// Recognizes a schedule that is given where times are needed.
#pragma once

#include <string>

namespace bubblescope::traces {

/// Whether a text is a schedule without times, in a format that is read.
bool is_schedule(const std::string& text);

}  // namespace bubblescope::traces
