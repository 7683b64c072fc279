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

/// Whether --profile lets the reductions of this schedule take turns when its messages are placed.
/// The cells of a file are what they are.
bool takes_turns_of_215(const std::string& name, const ShapeOptions& shape);

/// The schedule with the cells that take these turns.
ValidSchedule take_turns(ValidSchedule schedule, const std::string& name,
                         const ShapeOptions& shape);

/// Warns of flags that change nothing because of what a file posts, and of gradients that PyTorch
/// would leave unscaled.
void warn_of_posted(const std::string& name, const Schedule& schedule,
                    const PredictOptions& options);

}  // namespace bubblescope::tools
