// The classes of a report's values.
#pragma once

#include <nanobind/nanobind.h>

namespace bubblescope::tools {

void bind_report(nanobind::module_& module);

}  // namespace bubblescope::tools
