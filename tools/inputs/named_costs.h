// Requires explicit costs where the defaults would mislead.
#pragma once

#include <string>

#include "tools/flags/options.h"

namespace bubblescope::tools {

/// Throws Error, with the commands that may be meant, where the options leave the costs of this
/// timeline's ops at their default of 1 ms.
void expect_named_costs(const std::string& timeline_path, const PredictOptions& options);

}  // namespace bubblescope::tools
