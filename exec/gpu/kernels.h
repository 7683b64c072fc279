// Our kernels, and how they are launched:
//
//   const KernelLaunch launch{kBubblescopeBfloat16, rows, columns, GeluArguments{target, input}};
//
// The type of the arguments is the choice of the kernel. Those of layers are in layer_kernels.h,
// those that draw, add up and update weights are here.
#pragma once

#include <cstdint>
#include <variant>

#include "exec/gpu/layer_kernels.h"

namespace bubblescope::exec {

/// *mean = mean of `columns` values.
struct MeanArguments {
  float* mean;
  const float* values;
};

/// sum += values.
struct AddArguments {
  float* sum;
  const float* values;
};

/// values *= factor.
struct ScaleArguments {
  float* values;
  float factor;
};

/// weights -= learning_rate * grad. `copy` gets the weights in the launch's dtype, unless it is
/// null.
struct SgdArguments {
  float* weights;
  void* copy;
  const float* grad;
  float learning_rate;
};

/// One update by Adam; `steps` is the output of AdamStepArguments.
struct AdamArguments {
  float* weights;
  void* copy;  ///< as of SgdArguments
  const float* grad;
  float learning_rate;
  float* mean;    ///< the first moment
  float* square;  ///< the second moment
  const float* steps;
};

/// Advances three floats to the next update: the number of updates and the bias corrections of both
/// moments. One thread on the device does so, so that it also counts in a graph.
struct AdamStepArguments {
  float* steps;
};

/// Entry `at` becomes offset + scale * draw_entry(key, at), see draw_entry.h. `weights` and `copy`,
/// in the launch's dtype, may be null.
struct DrawArguments {
  float* weights;
  void* copy;
  std::uint64_t key;
  float scale;
  float offset;
};

using KernelArguments =
    std::variant<EmbedArguments, EmbedGradArguments, NormArguments, NormGradArguments,
                 GainGradArguments, CausalSoftmaxArguments, SoftmaxGradArguments, GeluArguments,
                 GeluGradArguments, CrossEntropyArguments, CrossEntropyGradArguments, MeanArguments,
                 AddArguments, ScaleArguments, SgdArguments, AdamArguments, AdamStepArguments,
                 AttentionArguments, QueryGradArguments, KeyGradArguments, DrawArguments>;

struct KernelLaunch {
  BubblescopeDtype dtype;
  std::int64_t rows;
  std::int64_t columns;
  KernelArguments arguments;
};

// Constants of the norm, the GELU and Adam; the same as on the host.
inline constexpr float kNormEpsilon = 1e-5F;
inline constexpr float kGeluSlope = 0.7978845608F;  ///< sqrt(2 / pi)
inline constexpr float kGeluCubic = 0.044715F;
inline constexpr float kAdamMeanDecay = 0.9F;
inline constexpr float kAdamSquareDecay = 0.99F;
inline constexpr float kAdamEpsilon = 1e-4F;

}  // namespace bubblescope::exec
