// Commands that look at orders alone take no model.
#pragma once

#include <string>
#include <vector>

namespace bubblescope::tools {

/// Throws Error where --model or --gpu is given to `command`: "check looks at orders, which --model
/// does not change; " and `instead`.
void expect_no_model(const std::vector<std::string>& arguments, const std::string& command,
                     const std::string& instead);

}  // namespace bubblescope::tools
