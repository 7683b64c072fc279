// A flag of the user's, and whether a step has any use for it.
#pragma once

#include <span>

#include "tools/inputs/unused_flags.h"

namespace bubblescope::tools {

struct GivenFlag {
  const char* name;
  bool is_given;  ///< with another value than the default
  bool is_used;
  const char* why;  ///< it is not used
};

/// Reports on stderr each flag that is given and not used.
void report_unused(std::span<const GivenFlag> flags, Hints hints = Hints::kFlags);

}  // namespace bubblescope::tools
