// Finds the parts of the program that are loaded on demand.
#pragma once

#include <string>

namespace bubblescope {

/// The module beside the program or, if there is none, its path in an installation, whether it
/// exists or not. No other folder is searched, because code of the module is run.
std::string find_module_file(const std::string& name);

}  // namespace bubblescope
