// One stage of a small transformer: pre-norm blocks of causal attention and MLP, in float32 or with
// all intermediate results rounded to bfloat16. The first stage embeds tokens, the last one ends in
// a head and the cross-entropy of the next token. As zero-bubble schedules need it, the backward
// has two halves: run_input_grad() computes what the previous stage waits for, run_weight_grad()
// the rest.
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

namespace bubblescope::exec {

/// The data of one micro-batch, batch * sequence tokens each, or of one slice.
struct Tokens {
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
};

/// Activations of one block that run_input_grad() reads.
struct BlockActivations {
  Matrix input;
  Matrix normed;  ///< norm(input) with its gain, the operand of W_qkv
  Matrix qkv;  ///< queries, keys and values side by side; empty for slices, which use their context
  Matrix attention;      ///< attention weights, [batch * heads * sequence, sequence]
  Matrix mixed;          ///< attention output, the operand of W_o
  Matrix middle;         ///< input + attention
  Matrix middle_normed;  ///< the operand of W_up
  Matrix gelu_input;
  Matrix gelu_output;
};

/// The activations that a forward saves for its backward.
struct Activations {
  Tokens tokens;
  std::vector<BlockActivations> blocks;
  Matrix head_input;   ///< last stage: output of its last block
  Matrix head_normed;  ///< the operand of W_head
  Matrix probabilities;
  std::vector<Matrix> joined;  ///< the inputs, if there are several
};

struct StageOutput {
  Matrix output;    ///< input of the next stage or of the shards; empty on a last one with a head
  double loss = 0;  ///< on the last stage: the mean over the micro-batch, or a slice's share of it
  Activations saved;
};

/// The weight gradient of one matrix: left^T * right.
struct WeightGemm {
  std::size_t weight = 0;
  Matrix left;
  Matrix right;
};

/// The gradient of a norm's gain, a single row. It is a by-product of the input gradient.
struct GainGrad {
  std::size_t weight = 0;
  Matrix grad;
};

/// The work that run_weight_grad() has to do for one micro-batch.
struct WeightWork {
  std::vector<WeightGemm> gemms;
  std::vector<GainGrad> gains;
  std::vector<std::int32_t> tokens;  ///< first stage
  Positions positions;               ///< first stage: of the tokens
  Matrix embedded_grad;              ///< first stage
};

struct StageGrad {
  std::vector<Matrix> input_grads;  ///< [input]: its part of the output gradient of another stage
  WeightWork work;
};

/// The input of a stage: the sum of those that it reads, each times its gain if they are several.
Matrix join(const Stage& masters, const std::vector<Matrix>& inputs);

/// The gradient of an output that several stages read, given the gradient of each.
Matrix sum_grads(std::vector<Matrix> grads, Precision precision);

/// `input` is the previous stage's output; the first stage reads only the tokens. With `slice`,
/// both have only the rows of the slice.
StageOutput run_forward(const Stage& masters, Matrix input, const Tokens& tokens,
                        const Slice* slice = nullptr);

/// Drops the attention weights and output, which are large and quick to recompute.
void drop_attention(Activations& saved);

/// Recomputes them from queries, keys and values.
void recompute_attention(const Stage& stage, Activations& saved, const Slice* slice = nullptr);

/// `output_grad` comes from the stages that read the output; a stage with a head starts from its
/// loss times `scale`.
StageGrad run_input_grad(const Stage& masters, Activations saved, Matrix output_grad, float scale,
                         const Slice* slice = nullptr);

/// Adds the weight gradients of one micro-batch to `gradients`.
void run_weight_grad(const WeightWork& work, std::vector<Matrix>& gradients);

}  // namespace bubblescope::exec
