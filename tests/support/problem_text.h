// The messages of all problems that a schedule has.
#pragma once

#include <string>

#include "sim/ir/validate.h"

namespace bubblescope::tests {

/// One per line, without a line end after the last; empty for a legal schedule.
inline std::string problems_of(const Schedule& schedule) {
  std::string text;
  for (const Problem& problem : validate(schedule))
    text += (text.empty() ? "" : "\n") + to_string(problem);
  return text;
}

}  // namespace bubblescope::tests
