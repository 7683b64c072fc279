// JSON strings and numbers, as json_writer.h writes them.
#pragma once

#include <string>
#include <string_view>

namespace bubblescope::traces {

/// Quotes a text, escaping quotes, backslashes and control characters; invalid UTF-8 becomes
/// U+FFFD, so that the result is always valid json. `ascii` escapes all letters beyond ASCII.
std::string json_string(std::string_view text, bool ascii = false);

/// Writes the shortest form that reads back as the same double, always with a point; null where it
/// is not finite, because json has no number for that.
std::string json_number(double value);

}  // namespace bubblescope::traces
