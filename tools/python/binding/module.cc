// The extension module bubblescope._core. Its functions are private: the package in
// tools/python/bubblescope/ is what users see.
#include <nanobind/nanobind.h>

#include "tools/python/binding/commands.h"
#include "tools/python/binding/scenarios.h"
#include "tools/python/binding/schedule.h"
#include "tools/python/binding/step.h"

NB_MODULE(_core, module) {
  module.attr("__version__") = BUBBLESCOPE_VERSION;
  bubblescope::tools::bind_step(module);
  bubblescope::tools::bind_scenarios(module);
  bubblescope::tools::bind_schedule(module);
  bubblescope::tools::bind_commands(module);
}
