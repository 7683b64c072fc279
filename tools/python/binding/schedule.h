// A schedule as Python sees it: legal or not.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <variant>
#include <vector>

#include "sim/ir/valid_schedule.h"
#include "tools/command.h"

namespace bubblescope::tools {

struct PythonSchedule {
  std::variant<ValidSchedule, InvalidSchedule> loaded;
  std::string timeline_path = {};  ///< where it was read from, if its ops have times of their own
  std::string built_as = {};       ///< the name by which it was built; else empty

  const Schedule& get() const;
  /// Throws Error (Fault::kProblem) with the first problem where it is not legal.
  const ValidSchedule& valid() const;
};

/// Builds the schedule of this name, or reads the file at this path.
PythonSchedule load_python_schedule(const std::string& name_or_path, const Arguments& words);

/// Parses the ops of ranks, one text per rank. The shape follows from the ops.
PythonSchedule parse_python_schedule(const std::vector<std::string>& ranks,
                                     const std::string& name);

void bind_schedule(nanobind::module_& module);

}  // namespace bubblescope::tools
