// GEMMs that were measured on a device, and what they say about all others.
//
// The time of a GEMM is that of a formula (LayerTimer) times a ratio, measured over formula, which
// is interpolated between the measured GEMMs of the same pass: their logarithms are averaged with
// weights exp(-d^2 / (2 * 0.7^2)), where d is the distance in doublings of the three sides. Far
// from all of them it is their plain mean, so that a device that is slower throughout is slower
// there, too.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/ir/named.h"

namespace bubblescope::inline sim {

/// F sums over the inputs of a weight matrix, I over its outputs, W over tokens.
enum class GemmPass : std::uint8_t { kForward, kInputGrad, kWeightGrad };
inline constexpr std::array<Named<GemmPass>, 3> kGemmPasses{{
    {GemmPass::kForward, "F"},
    {GemmPass::kInputGrad, "I"},
    {GemmPass::kWeightGrad, "W"},
}};

/// A GEMM of `rows` tokens with a matrix of inputs x outputs.
struct GemmShape {
  GemmPass pass = GemmPass::kForward;
  double rows = 1;
  double inputs = 1;
  double outputs = 1;

  double flops() const { return 2 * rows * inputs * outputs; }
  bool operator==(const GemmShape&) const = default;
};

/// W includes what adds its result to 32-bit gradients.
struct MeasuredGemm {
  GemmShape shape;
  double flops_per_second = 1;

  bool operator==(const MeasuredGemm&) const = default;
};

/// The ratio of measured times over those of `formula`, in seconds, for this shape; 1 if no GEMM of
/// its pass was measured.
double interpolate_ratio(const std::vector<MeasuredGemm>& measured, const GemmShape& shape,
                         const std::function<double(const GemmShape&)>& formula);

}  // namespace bubblescope::inline sim
