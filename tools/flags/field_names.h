// The fields that errors of the library name, and the flags that set them.
//
// The library knows no flags. Its errors name a field in backquotes, `microbatch_group_size`, and
// at the command line that becomes the flag, --microbatch-group-size.
#pragma once

#include <string>
#include <string_view>

#include "sim/ir/validate.h"

namespace bubblescope::tools {

/// Replaces fields by their flags; other words in backquotes stay.
std::string name_flags(std::string_view text);

/// Replaces the fields in the message of each problem.
Problems name_flags(Problems problems);

}  // namespace bubblescope::tools
