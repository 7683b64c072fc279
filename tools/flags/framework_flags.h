// The names that flags of training frameworks have here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bubblescope::tools {

/// The end of an error message about an unknown flag: "; here it is '--zero'". Empty if no
/// framework is known to have it, or if `known`, the flags of the command, lack what it is called
/// here.
std::string explain_framework_flag(std::string_view name, const std::vector<std::string>& known);

}  // namespace bubblescope::tools
