// One stage of the transformer of exec/training on a device: the same order of layers, the same
// things kept from forward to input gradient to weight gradient.
#pragma once

#include <vector>

#include "exec/gpu/host/gpu_layers.h"
#include "exec/training/stage.h"

namespace bubblescope {

/// One weight of a stage on its device. Not an owner.
struct GpuWeight {
  GpuMatrix master;  ///< float32
  GpuMatrix value;   ///< what products read; the master itself where numbers are float32
  GpuMatrix grad;    ///< float32
};

/// Where a stage is, and its weights, in the order of exec/training/stage.h.
struct GpuStage {
  TransformerShape shape;
  bool first = false;
  bool last = false;
  std::vector<GpuWeight> weights;
};

struct GpuBlockActivations {
  GpuMatrix input, normed, qkv, attention, mixed, middle, middle_normed, before_gelu, after_gelu;
};

struct GpuActivations {
  std::vector<GpuBlockActivations> blocks;
  GpuMatrix head_input, head_normed, probabilities;

  Bytes bytes() const;
  /// Those that are there, in a fixed order.
  std::vector<GpuMatrix*> matrices();
};

/// left^T * right, still to be added to a weight's gradient.
struct GpuWeightProduct {
  std::size_t weight = 0;
  GpuMatrix left;
  GpuMatrix right;
};

struct GpuGainGrad {
  std::size_t weight = 0;
  GpuMatrix grad;
};

struct GpuWeightWork {
  std::vector<GpuWeightProduct> products;
  std::vector<GpuGainGrad> gains;
  GpuMatrix embedded_grad;  ///< first stage

  Bytes bytes() const;
};

/// The tokens of one micro-batch, or of a slice of it, on the stage's device, and where their loss
/// goes.
struct GpuTokens {
  const void* inputs = nullptr;
  const void* targets = nullptr;
  float* loss = nullptr;
  Positions positions = {};
};

/// What the slices of a micro-batch leave to each other on one stage, per block: queries, keys and
/// values of whole sequences, as far as they were made, and what is known of their gradients.
struct GpuSliceContext {
  std::vector<GpuMatrix> qkv;
  std::vector<GpuMatrix> qkv_grad;
};

GpuSliceContext make_context(GpuLayers& layers, const GpuStage& stage);
void drop(GpuLayers& layers, const GpuSliceContext& context);

/// What a forward reads and writes. The input is empty on the first stage. What the next stage
/// reads goes to `output`; where that is empty it is not made.
struct GpuForwardRun {
  GpuMatrix input;
  GpuTokens tokens;
  GpuMatrix output = {};
  const GpuSliceContext* context = nullptr;  ///< null: sequences are whole
  bool is_kept = true;                       ///< a backward will read what is returned
};

/// The input becomes part of what is returned.
GpuActivations run_forward(GpuLayers& layers, const GpuStage& stage, const GpuForwardRun& run);

/// What an input gradient reads and writes. `output_grad` is empty on the last stage. What the
/// previous stage reads goes to `input_grad`, which is empty on the first.
struct GpuInputGradRun {
  const GpuActivations& saved;  ///< given back
  GpuTokens tokens;
  GpuMatrix output_grad;
  GpuMatrix input_grad;
  float scale = 1;
  const GpuSliceContext* context = nullptr;  ///< null: sequences are whole
};

GpuWeightWork run_input_grad(GpuLayers& layers, const GpuStage& stage, const GpuInputGradRun& run);

/// Adds to the stage's gradients and gives `work` back.
void run_weight_grad(GpuLayers& layers, const GpuStage& stage, const GpuWeightWork& work,
                     const GpuTokens& tokens);

/// Gives back what attention made between its queries, keys and values and its output.
void drop_attention(GpuLayers& layers, GpuActivations& saved);

/// Makes it again.
void make_attention(GpuLayers& layers, const GpuStage& stage, GpuActivations& saved,
                    const Positions& positions, const GpuSliceContext* context);

/// Gives back what a forward made, without a backward.
void drop(GpuLayers& layers, GpuActivations saved);

}  // namespace bubblescope
