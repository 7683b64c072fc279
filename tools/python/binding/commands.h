// Commands of the program, called in this process.
#pragma once

#include <nanobind/nanobind.h>

namespace bubblescope::tools {

void bind_commands(nanobind::module_& module);

}  // namespace bubblescope::tools
