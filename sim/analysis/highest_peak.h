// The highest memory peak of a step, over all of its ranks.
#pragma once

#include <optional>

#include "sim/analysis/report.h"
#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// The highest peak in every unit. Each may be that of another rank.
struct HighestPeak {
  double activations = 0;      ///< in micro-batches of a rank's whole share
  double units = 0;            ///< in the memory model's unit
  std::optional<Bytes> bytes;  ///< of the ranks whose bytes are known; empty if none are
};

HighestPeak find_highest_peak(const BubbleReport& report);

}  // namespace bubblescope::inline sim
