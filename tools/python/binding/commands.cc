// Runs a command with its output kept, for those whose result is a table or a file.
#include "tools/python/binding/commands.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

#include "tools/command.h"
#include "tools/flags/take_input_limit.h"
#include "tools/interrupt.h"
#include "tools/print.h"
#include "tools/python/binding/calls.h"

namespace bubblescope::tools {

namespace nb = nanobind;

namespace {

/// The exit status and the output of a command.
using Ran = std::pair<int, std::string>;

Ran run_kept(const std::string& name, const Arguments& words, PrintCapture& kept) {
  for (const Command& command : commands())
    if (command.name == name) {
      const int status = command.run(take_input_limit(words));
      return {status, std::move(kept.output)};
    }
  throw Error("no command is called '" + name + "'");
}

}  // namespace

void bind_commands(nb::module_& module) {
  module.def("run_command", [](const std::string& name, const Arguments& words) {
    const InterruptCheck on_signal(expect_no_signal);
    return call_library_with_output(
        [&](PrintCapture& kept) { return run_kept(name, words, kept); });
  });
}

}  // namespace bubblescope::tools
