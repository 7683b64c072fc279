// A predicted step as Python sees it: the C++ value, read through functions that copy nothing
// large.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/inputs/predict.h"

namespace bubblescope::tools {

/// A predicted step: its report, and those ops that the report names.
struct PythonStep {
  std::shared_ptr<const TimedStep> timed;
  Problems problems;  ///< ranks over their cap
  /// The inputs from which all ops follow; null where `timed` has them.
  std::shared_ptr<const PredictInputs> inputs;
};

/// A step with all its ops, shared with the arrays that refer to it.
struct PythonWholeStep {
  std::shared_ptr<const TimedStep> timed;
};

/// Names of a column, and for each row the index of its name; -1: none.
struct NamedColumn {
  std::vector<std::string> names;
  std::vector<std::int32_t> codes;
};

/// Returns the lane of every instruction.
NamedColumn find_lane_names(const Program& program);

/// Throws Error where the flags ask for another shape than the schedule's.
void expect_shape(const Schedule& schedule, const PredictOptions& flags);

/// Predicts the step of a schedule; its moves are still to be applied. Throws Error.
PythonStep predict_step(ValidSchedule schedule, const PredictInputs& inputs);

/// All ops of a step. A long step that repeats itself is predicted anew, as a whole.
PythonWholeStep complete_step(const PythonStep& step);

/// The step as `simulate --format json` prints it.
std::string write_json(const PythonStep& step);

/// The step as `simulate` prints it.
std::string write_text(const PythonStep& step);

/// The content of an export, such as "svg"; `file` is its name, whose ending may matter.
std::string render(const PythonWholeStep& step, const std::string& format, const std::string& file);

void bind_step(nanobind::module_& module);

}  // namespace bubblescope::tools
