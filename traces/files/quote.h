// Quotes pieces of files in messages.
#pragma once

#include <string>
#include <string_view>

namespace bubblescope::traces {

/// Quotes a text for a message, cut to 40 bytes, with control characters and what is not UTF-8 as
/// \x00.
std::string quote(std::string_view text);

}  // namespace bubblescope::traces
