// The assumptions of a step, for reports and files to state.
#pragma once

#include <map>
#include <string>

#include "sim/ir/lower.h"

namespace bubblescope::traces {

/// The assumptions under which a step was predicted or measured.
struct MadeWith {
  LowerOptions lower;
  std::string costs;    ///< in words; empty where unknown
  std::string profile;  ///< empty for none
  /// Faults, slow ranks, arrivals and a policy: the value of each that is given, by field.
  std::map<std::string, std::string> conditions = {};
};

}  // namespace bubblescope::traces
