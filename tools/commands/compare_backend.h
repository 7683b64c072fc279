// compare --backend: runs every predicted schedule, and judges its prediction.
#pragma once

#include <string>
#include <vector>

#include "tools/commands/compare_measured.h"
#include "tools/commands/compare_rows.h"

namespace bubblescope::tools {

/// The measurements of compare. A transformer without --costs is calibrated in the same process.
struct MeasuredComparison {
  const RunContext& context;
  std::string results_file;  ///< gets a line per schedule as soon as it is measured; may be empty
};

/// Measures the rows that have a prediction, side by side, and prints the refusals of the others.
/// Throws Error if a run fails, or if there are no costs to predict a transformer from.
std::vector<Comparison> compare_rows(std::vector<ComparedRow> rows,
                                     const MeasuredComparison& request);

}  // namespace bubblescope::tools
