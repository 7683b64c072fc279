// One stage of a small transformer: pre-norm blocks of causal attention and MLP, in float32 or with
// all that is made on the way rounded to bfloat16. The first stage embeds tokens, the last one ends
// in a head and the cross-entropy of the next token. The backward pass comes in two halves, as
// zero-bubble schedules want it: run_input_grad() is all that the previous stage waits for,
// run_weight_grad() does the rest.
//
//   x = embedding[token] + position                            first stage only
//   x = x + attention(norm(x) W_qkv) W_o                       in every block
//   x = x + gelu(norm(x) W_up) W_down
//   loss = cross-entropy(norm(x) W_head)                       last stage only
#pragma once

#include <cstdint>
#include <vector>

#include "exec/training/matrix.h"
#include "exec/training/slices.h"
#include "exec/training/stage.h"

namespace bubblescope {

/// One micro-batch's data, batch * sequence of each; those of a slice are fewer.
struct Tokens {
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
};

/// What run_input_grad() needs of one block's forward.
struct BlockActivations {
  Matrix input;
  Matrix normed;         ///< norm(input) with its gain: what W_qkv multiplies
  Matrix qkv;            ///< queries, keys and values side by side; a slice's are in its context
  Matrix attention;      ///< softmax rows, [batch * heads * sequence, sequence]
  Matrix mixed;          ///< what W_o multiplies
  Matrix middle;         ///< input + attention
  Matrix middle_normed;  ///< what W_up multiplies
  Matrix before_gelu;
  Matrix after_gelu;
};

/// What a forward keeps until its backward.
struct Activations {
  Tokens tokens;
  std::vector<BlockActivations> blocks;
  Matrix head_input;   ///< last stage: the end of its last block
  Matrix head_normed;  ///< what W_head multiplies
  Matrix probabilities;
};

struct StageOutput {
  Matrix output;    ///< what the next stage reads; empty on the last
  double loss = 0;  ///< the last stage's: the mean over the micro-batch, a slice's share of it
  Activations saved;
};

/// The weight gradient of one matrix: left^T * right.
struct WeightProduct {
  std::size_t weight = 0;
  Matrix left;
  Matrix right;
};

/// The gradient of a norm's gain. It is a by-product of the input gradient, and a single row.
struct GainGrad {
  std::size_t weight = 0;
  Matrix grad;
};

/// What run_weight_grad() still has to do for one micro-batch.
struct WeightWork {
  std::vector<WeightProduct> products;
  std::vector<GainGrad> gains;
  std::vector<std::int32_t> tokens;  ///< first stage
  Positions positions;               ///< first stage: theirs
  Matrix embedded_grad;              ///< first stage
};

struct StageGrad {
  Matrix input_grad;  ///< what the previous stage reads; empty on the first
  WeightWork work;
};

/// `input` is what the stage before made; the first stage reads the tokens alone. Both are those of
/// the slice; null: of whole sequences.
StageOutput run_forward(const Stage& masters, Matrix input, const Tokens& tokens,
                        const Slice* slice = nullptr);

/// Forgets the core of attention, which is large and quick to make again: the softmax rows and what
/// they mix.
void drop_attention(Activations& saved);

/// Makes it again, from queries, keys and values.
void recompute_attention(const Stage& stage, Activations& saved, const Slice* slice = nullptr);

/// `output_grad` comes from the next stage; the last stage starts from its loss, times `scale`.
StageGrad run_input_grad(const Stage& masters, Activations saved, Matrix output_grad, float scale,
                         const Slice* slice = nullptr);

/// Adds one micro-batch's part to the gradients.
void run_weight_grad(const WeightWork& work, std::vector<Matrix>& gradients);

}  // namespace bubblescope
