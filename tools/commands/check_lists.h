// Checks lists with messages: whether PyTorch takes them, and which flags have no effect on them.
#pragma once

#include <string>
#include <variant>

#include "sim/ir/valid_schedule.h"
#include "tools/flags/options.h"

namespace bubblescope::tools {

/// Whether a profile is of PyTorch, whose releases take different lists.
bool is_of_pytorch(Profile profile);

/// The schedule, with what the release that --profile names refuses in its lists.
std::variant<ValidSchedule, InvalidSchedule> check_release(ValidSchedule schedule,
                                                           const ShapeOptions& shape);

/// Warns of flags that change nothing because of what a file posts, and of gradients that PyTorch
/// would leave unscaled.
void warn_of_posted(const std::string& name, const Schedule& schedule,
                    const PredictOptions& options);

}  // namespace bubblescope::tools
