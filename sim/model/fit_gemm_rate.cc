// Tries half sizes; the rate follows from each.
#include "sim/model/fit_gemm_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace bubblescope::inline sim {

namespace {

constexpr int kMaxHalfSize = 512;
constexpr int kHalfSizeStep = 4;

/// The part of the rate of large GEMMs that these sides reach.
double reached(const GemmShape& shape, double half_size) {
  double part = 1;
  for (const double side : {shape.rows, shape.inputs, shape.outputs})
    part *= side / (side + half_size);
  return part;
}

}  // namespace

FittedGemmRate fit_gemm_rate(const std::vector<MeasuredGemm>& measured) {
  FittedGemmRate best;
  constexpr double kRounding = 1e-12;  // of logarithms; shapes with the same sides tell nothing
  double least = std::numeric_limits<double>::infinity();
  double fastest = 0;
  for (const MeasuredGemm& each : measured) fastest = std::max(fastest, each.flops_per_second);
  const auto count = static_cast<double>(measured.size());
  for (int half = 0; half <= kMaxHalfSize; half += kHalfSizeStep) {
    double sum = 0;
    double squares = 0;
    for (const MeasuredGemm& each : measured) {
      const double level = std::log(each.flops_per_second / reached(each.shape, half));
      sum += level;
      squares += level * level;
    }
    const double spread = squares - sum * sum / count;
    if (spread >= least - kRounding) continue;
    least = spread;
    best = {std::min(fastest, std::exp(sum / count)), static_cast<double>(half)};
  }
  return best;
}

}  // namespace bubblescope::inline sim
