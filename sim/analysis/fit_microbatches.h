// Costs per micro-batch: the median time of every op over the iterations, for simulations of the
// very micro-batches that were measured.
//
// Such times exist only if all iterations run the same micro-batches: as many of them, and each as
// long in one iteration as in the others. Then what is left of the differences between
// micro-batches is noise (fit_noise.h), without an effect of lengths. Where it is not, a median
// over iterations describes no micro-batch at all, and the fit is refused.
//
// A stage may split only some of its backwards. A whole backward that was not seen then takes as
// long as its halves, and halves that were not seen are the stage's usual fractions of the whole.
#pragma once

#include <span>
#include <vector>

#include "sim/analysis/op_samples.h"
#include "sim/model/cost_table.h"
#include "sim/model/noise.h"

namespace bubblescope::inline sim {

struct MicrobatchCosts {
  std::vector<std::vector<CostList>> lists;  ///< [stage]: of the same kinds of op in all
  Noise noise;                               ///< how iterations differ
};

/// Fits lists for the times that any of the `stages` has. Requires at least one step. Throws Error
/// if there are several replicas, or if the iterations differ in their micro-batches.
MicrobatchCosts fit_microbatches(std::span<const ReplicatedStep> steps,
                                 const std::vector<StageEntry>& stages);

}  // namespace bubblescope::inline sim
