// The flag --max-input SIZE, which every command accepts, because every reader obeys it.
#pragma once

#include "tools/command.h"

namespace bubblescope::tools {

/// Sets the limit that --max-input gives, and returns the other words.
Arguments take_input_limit(const Arguments& words);

}  // namespace bubblescope::tools
