// The rows of compare: every schedule in every shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/error.h"
#include "tools/flags/options.h"
#include "tools/inputs/predict.h"

namespace bubblescope::tools {

/// One schedule's result in one shape, or why there is none.
struct ComparedRow {
  std::string name;  ///< includes the shape where there are several
  std::optional<TimedStep> step;
  std::string refusal;            ///< with a step: the cap that it exceeds
  Fault fault = Fault::kProblem;  ///< at which the refusal is
  bool of_all = false;            ///< from 'all', not requested by name
  /// Where ranks choose by a policy: the schedule whose order is their hint; `step` has the order
  /// that they choose.
  std::optional<ValidSchedule> hint = {};
  std::string schedule = {};  ///< the name without the shape
};

/// The schedules of a list such as "gpipe,1f1b", each once; "all" stands for every schedule that
/// trains. Throws Error for an empty list.
std::vector<std::string> names_of(const std::string& list);

/// The parts of every row that a caller shows: only its report, or each of its ops.
enum class RowDetail : std::uint8_t { kReport, kOps };

/// Predicts every schedule of a list such as "gpipe,1f1b" or "all" in every shape such as "8x32x2";
/// from "all" only those that accept the shape. Each schedule and shape is shown once. Throws Error
/// for what is neither a list nor a shape.
std::vector<ComparedRow> predict_rows(const std::string& list,
                                      const std::vector<std::string>& shapes,
                                      const PredictInputs& inputs, RowDetail detail);

/// Throws Error where flags of one shape stand beside those of several.
void expect_sizes_once(const std::vector<std::string>& shapes, const ShapeOptions& shape);

/// Returns the exit status of the rows: that of the gravest refusal, or 0.
int status_of(const std::vector<ComparedRow>& rows);

/// Reports the shapes with chunks that none of these schedules takes.
void warn_of_unused_chunks(const std::vector<std::string>& shapes,
                           const std::vector<std::string>& names);

}  // namespace bubblescope::tools
