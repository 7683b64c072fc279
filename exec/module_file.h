// Where the parts of the program are that are loaded only when asked for.
#pragma once

#include <string>

namespace bubblescope {

/// Beside the program; else where it is installed relative to the program, whether it is there or
/// not. Never in any other folder: what is found there is run.
std::string find_module_file(const std::string& name);

}  // namespace bubblescope
