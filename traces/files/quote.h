// Quotes pieces of files in messages.
#pragma once

#include <string>
#include <string_view>

namespace bubblescope::traces {

/// Quotes a text for a message. It is cut to 40 bytes; control characters and bytes that are not
/// UTF-8 become \x00.
std::string quote(std::string_view text);

}  // namespace bubblescope::traces
