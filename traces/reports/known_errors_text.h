// What published runs say about predictions, in words.
#pragma once

#include <string>

#include "sim/model/known_errors.h"

namespace bubblescope::traces {

/// "all 22 published runs of dense models on h100 took longer than predicted, by 1 to 25 %". Says
/// why a predicted time lies outside of the range of those runs, where it does.
std::string known_errors_text(const KnownErrors& errors);

}  // namespace bubblescope::traces
