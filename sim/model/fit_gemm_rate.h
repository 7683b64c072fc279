// The formula of GEMMs' rates, fitted to measured ones, so that it also holds for GEMMs that are
// far larger.
#pragma once

#include <vector>

#include "sim/model/measured_gemms.h"

namespace bubblescope::inline sim {

/// A rate for large GEMMs, and the length at which a side reaches half of it.
struct FittedGemmRate {
  double flops_per_second = 0;
  double half_size = 0;
};

/// The formula whose logarithms are closest to those of the measured GEMMs, at most as fast as the
/// fastest of them. `measured` is not empty.
FittedGemmRate fit_gemm_rate(const std::vector<MeasuredGemm>& measured);

}  // namespace bubblescope::inline sim
