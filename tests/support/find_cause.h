// Finds a cause of long steps by its kind.
#pragma once

#include <algorithm>

#include "sim/analysis/causes.h"

namespace bubblescope::tests {

/// Returns the first cause of this kind; null where there is none.
inline const Cause* find_cause(const CauseReport& report, CauseKind kind) {
  const auto found = std::find_if(report.causes.begin(), report.causes.end(),
                                  [kind](const Cause& cause) { return cause.kind() == kind; });
  return found == report.causes.end() ? nullptr : &*found;
}

}  // namespace bubblescope::tests
