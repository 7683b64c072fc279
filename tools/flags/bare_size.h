// Warns about sizes without a unit.
#pragma once

#include <string>

namespace bubblescope::tools {

/// Warns on stderr where a size is a small number without a unit, because it counts bytes:
/// "bubblescope: --memory 16 is 16 bytes, not 16GB". `unit` is the suffix
/// that may be meant.
void warn_of_bare_size(const std::string& flag, const std::string& text, const std::string& what,
                       const std::string& unit);

}  // namespace bubblescope::tools
