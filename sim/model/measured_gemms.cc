// Interpolates between measured GEMMs.
#include "sim/model/measured_gemms.h"

#include <cmath>

namespace bubblescope::inline sim {

namespace {

/// Leaving out one of SimuMax's 514 GEMMs of B200 and 183 of A100 (data of version 2025) at a
/// time, widths of 0.5 to 1 predict the others equally well: 9.2 and 3.6 % off on average. Waves of
/// tiles in the formula change that to 10.1 and 3.2 %, so there are none.
constexpr double kDoublings = 0.7;
/// The weight of the plain mean.
constexpr double kMeanWeight = 0.1;

double weigh(const GemmShape& left, const GemmShape& right) {
  const double rows = std::log2(left.rows / right.rows);
  const double inputs = std::log2(left.inputs / right.inputs);
  const double outputs = std::log2(left.outputs / right.outputs);
  const double square = rows * rows + inputs * inputs + outputs * outputs;
  return std::exp(-square / (2 * kDoublings * kDoublings));
}

}  // namespace

double interpolate_ratio(const std::vector<MeasuredGemm>& measured, const GemmShape& shape,
                         const std::function<double(const GemmShape&)>& formula) {
  double count = 0;
  double sum = 0;
  double weights = 0;
  double weighted = 0;
  for (const MeasuredGemm& each : measured) {
    if (each.shape.pass != shape.pass) continue;
    const double seconds = each.shape.flops() / each.flops_per_second;
    const double ratio = std::log(seconds / formula(each.shape));
    const double weight = weigh(shape, each.shape);
    count += 1;
    sum += ratio;
    weights += weight;
    weighted += weight * ratio;
  }
  if (count == 0) return 1;
  return std::exp((weighted + kMeanWeight * sum / count) / (weights + kMeanWeight));
}

}  // namespace bubblescope::inline sim
