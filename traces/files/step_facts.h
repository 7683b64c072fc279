// Facts of a simulated step that its Program and Timeline do not contain, and reports show. Files
// of a step keep them, so that `analyze` gives the same report again.
#pragma once

#include <optional>
#include <vector>

#include "sim/analysis/parts_report.h"
#include "sim/analysis/report.h"
#include "sim/model/memory_model.h"
#include "traces/files/format.h"

namespace bubblescope::traces {

struct StepFacts {
  MadeWith made = {};
  std::optional<MemoryModel> memory = {};  ///< empty: activations count in micro-batches
  std::optional<PartsReport> parts = {};   ///< if ops have parts
  std::vector<LinkUse> links = {};         ///< empty without a cluster
};

}  // namespace bubblescope::traces
