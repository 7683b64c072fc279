// One stage of the transformer on a device: the same layers as exec/training, which keep the same
// matrices for the input gradient and the weight gradient.
#pragma once

#include <vector>

#include "exec/gpu/host/gpu_layers.h"
#include "exec/training/stage.h"

namespace bubblescope::exec {

/// One weight of a stage on its device; not an owner.
struct GpuWeight {
  GpuMatrix master;  ///< float32
  GpuMatrix value;   ///< read by GEMMs; the master itself in float32
  GpuMatrix grad;    ///< float32
};

/// A stage and its weights, in the order of exec/training/stage.h.
struct GpuStage {
  TransformerShape shape;
  bool first = false;
  bool last = false;
  std::vector<GpuWeight> weights;
};

struct GpuBlockActivations {
  GpuMatrix input, normed, qkv, attention, mixed, middle, middle_normed, gelu_input, gelu_output;
};

struct GpuActivations {
  std::vector<GpuBlockActivations> blocks;
  GpuMatrix head_input, head_normed, probabilities;

  Bytes bytes() const;
  /// Returns the matrices that are not empty, in a fixed order.
  std::vector<GpuMatrix*> matrices();
};

/// A pending weight gradient: left^T * right.
struct GpuWeightGemm {
  std::size_t weight = 0;
  GpuMatrix left;
  GpuMatrix right;
};

struct GpuGainGrad {
  std::size_t weight = 0;
  GpuMatrix grad;
};

struct GpuWeightWork {
  std::vector<GpuWeightGemm> gemms;
  std::vector<GpuGainGrad> gains;
  GpuMatrix embedded_grad;  ///< first stage

  Bytes bytes() const;
};

/// The tokens of a micro-batch or slice on the stage's device, and the address of their loss.
struct GpuTokens {
  const std::int32_t* inputs = nullptr;
  const std::int32_t* targets = nullptr;
  float* loss = nullptr;
  Positions positions = {};
};

/// Attention state that the slices of a micro-batch share on one stage: per block, the queries,
/// keys and values computed so far for whole sequences, and their accumulated gradients.
struct GpuSliceContext {
  std::vector<GpuMatrix> qkv;
  std::vector<GpuMatrix> qkv_grad;
};

GpuSliceContext make_context(RankStream& stream, const GpuStage& stage);
void drop(RankStream& stream, const GpuSliceContext& context);

/// Operands of a forward. `input` is empty on the first stage. The result for the next stage goes
/// to `output`; if that is empty, it is not computed.
struct GpuForwardRun {
  GpuMatrix input;
  GpuTokens tokens;
  GpuMatrix output = {};
  const GpuSliceContext* context = nullptr;  ///< null: sequences are not sliced
  bool is_kept = true;                       ///< a backward will read the result
};

/// Takes `input` into the result.
GpuActivations run_forward(GpuLayers& layers, const GpuStage& stage, const GpuForwardRun& run);

/// Operands of an input gradient. `output_grad` is empty on the last stage, `input_grad`, the
/// result for the previous stage, on the first.
struct GpuInputGradRun {
  const GpuActivations& saved;  ///< freed by the call
  GpuTokens tokens;
  GpuMatrix output_grad;
  GpuMatrix input_grad;
  float scale = 1;
  const GpuSliceContext* context = nullptr;  ///< null: sequences are not sliced
};

GpuWeightWork run_input_grad(GpuLayers& layers, const GpuStage& stage, const GpuInputGradRun& run);

/// Adds to the stage's gradients and frees `work`.
void run_weight_grad(GpuLayers& layers, const GpuStage& stage, const GpuWeightWork& work,
                     const GpuTokens& tokens);

/// Frees the matrices inside attention, which are recomputed from queries, keys and values.
void drop_attention(RankStream& stream, GpuActivations& saved);

/// Recomputes them.
void make_attention(GpuLayers& layers, const GpuStage& stage, GpuActivations& saved,
                    const Positions& positions, const GpuSliceContext* context);

/// Frees the result of a forward that has no backward.
void drop(RankStream& stream, GpuActivations saved);

}  // namespace bubblescope::exec
