// The forward and backward of a stage.
#include "exec/training/transformer.h"

#include <optional>
#include <utility>

#include "exec/training/layers.h"

namespace bubblescope::exec {

namespace {

using namespace weight_order;

/// A stage whose weights are rounded as GEMMs read them; float32 weights are not copied.
class ReadStage {
 public:
  explicit ReadStage(const Stage& masters)
      : rounded_(masters.shape.precision == Precision::kFloat32 ? std::nullopt
                                                                : std::optional(as_read(masters))),
        stage_(rounded_ ? *rounded_ : masters) {}
  ReadStage(const ReadStage&) = delete;
  ReadStage& operator=(const ReadStage&) = delete;

  const Stage& operator*() const { return stage_; }

 private:
  std::optional<Stage> rounded_;
  const Stage& stage_;
};

AttentionShape attention_shape(const TransformerShape& shape, const Slice* slice) {
  AttentionShape attention{shape.batch, shape.sequence, shape.heads, shape.width / shape.heads,
                           {},          shape.precision};
  if (slice != nullptr) attention.queries = slice->positions;
  return attention;
}

Positions positions_of(const Stage& stage, const Slice* slice) {
  return slice != nullptr ? slice->positions : Positions{0, stage.shape.sequence};
}

/// The slice's fraction of the micro-batch's tokens, over which the loss is averaged.
double share_of(const Stage& stage, const Slice* slice) {
  return static_cast<double>(positions_of(stage, slice).count) / stage.shape.sequence;
}

/// Returns the queries, keys and values of a block computed so far.
const Matrix& known_qkv(const BlockActivations& saved, std::size_t block, const Slice* slice) {
  return slice != nullptr ? slice->context.qkv[block] : saved.qkv;
}

Matrix embed(const Stage& stage, const Tokens& tokens, const Positions& positions) {
  const TransformerShape& shape = stage.shape;
  Matrix output(shape.batch * positions.count, shape.width);
  for (std::int32_t row = 0; row < output.rows; ++row) {
    const float* const token =
        stage.weights[kEmbedding].row(tokens.inputs[static_cast<std::size_t>(row)]);
    const float* const position =
        stage.weights[kPosition].row(positions.begin + row % positions.count);
    for (std::int32_t column = 0; column < output.columns; ++column)
      output.row(row)[column] = token[column] + position[column];
  }
  return stored(std::move(output), shape.precision);
}

struct BlockOutput {
  Matrix output;
  BlockActivations saved;
};

/// Computes the attention weights and output from queries, keys and values.
void run_attention(const Stage& stage, std::size_t block, BlockActivations& saved,
                   const Slice* slice) {
  const AttentionShape shape = attention_shape(stage.shape, slice);
  const Matrix& qkv = known_qkv(saved, block, slice);
  saved.attention = attention_weights(qkv, shape);
  saved.mixed = mix_values(qkv, saved.attention, shape);
}

BlockOutput run_block(const Stage& stage, std::size_t block, Matrix input, const Slice* slice) {
  const Matrix* const weights = &stage.weights[block_begin(stage, block)];
  const auto keep = [&](Matrix computed) {
    return stored(std::move(computed), stage.shape.precision);
  };
  BlockActivations saved;
  saved.normed = keep(apply_gain(normalize(input), weights[kGain]));
  saved.qkv = keep(product(whole(saved.normed), whole(weights[kQkv])));
  if (slice != nullptr)
    put_rows(slice->context.qkv[block], stage.shape.sequence, slice->positions,
             std::exchange(saved.qkv, Matrix()));
  run_attention(stage, block, saved, slice);
  saved.middle = input;
  multiply(whole(saved.mixed), whole(weights[kOut]), onto(saved.middle), {1, true});
  saved.middle = keep(std::move(saved.middle));
  saved.middle_normed = keep(apply_gain(normalize(saved.middle), weights[kMiddleGain]));
  saved.gelu_input = keep(product(whole(saved.middle_normed), whole(weights[kUp])));
  saved.gelu_output = keep(gelu(saved.gelu_input));
  Matrix output = saved.middle;
  multiply(whole(saved.gelu_output), whole(weights[kDown]), onto(output), {1, true});
  saved.input = std::move(input);
  return {keep(std::move(output)), std::move(saved)};
}

/// Runs the backward of a stage and collects the operands of its weight gradients.
class StageBackward {
 public:
  StageBackward(const Stage& stage, const Slice* slice, WeightWork& work)
      : stage_(stage), slice_(slice), work_(work) {}

  /// Returns the gradient of the block's input, given that of its output.
  Matrix run_block(std::size_t block, BlockActivations saved, Matrix grad) {
    const std::size_t begin = block_begin(stage_, block);
    const Matrix* const weights = &stage_.weights[begin];
    Matrix up_grad = keep(gelu_grad(saved.gelu_input, pull_back(grad, weights[kDown])));
    Matrix middle_grad =
        pull_back_norm(begin + kMiddleGain, saved.middle, pull_back(up_grad, weights[kUp]));
    add(middle_grad, grad);
    middle_grad = keep(std::move(middle_grad));
    work_.gemms.push_back({begin + kDown, std::move(saved.gelu_output), std::move(grad)});
    work_.gemms.push_back({begin + kUp, std::move(saved.middle_normed), std::move(up_grad)});
    Matrix qkv_grad = pull_back_attention(block, saved, pull_back(middle_grad, weights[kOut]));
    Matrix result = pull_back_norm(begin + kGain, saved.input, pull_back(qkv_grad, weights[kQkv]));
    add(result, middle_grad);
    result = keep(std::move(result));
    work_.gemms.push_back({begin + kQkv, std::move(saved.normed), std::move(qkv_grad)});
    work_.gemms.push_back({begin + kOut, std::move(saved.mixed), std::move(middle_grad)});
    return result;
  }

  /// Returns the gradient of each input, given that of their sum.
  std::vector<Matrix> split(const Activations& saved, Matrix grad) {
    std::vector<Matrix> grads;
    for (std::size_t input = 0; input < saved.joined.size(); ++input) {
      const std::size_t weight = join_begin(stage_) + input;
      work_.gains.push_back({weight, scale_grad(saved.joined[input], grad)});
      grads.push_back(keep(apply_gain(grad, stage_.weights[weight])));
    }
    if (grads.empty()) grads.push_back(std::move(grad));
    return grads;
  }

  /// Returns the gradient of the last block's output, given that of the norm before the head.
  Matrix run_head_norm(Activations& saved, const Matrix& grad) {
    return keep(pull_back_norm(head_begin(stage_) + kHeadGain, saved.head_input, grad));
  }

  /// Returns the gradient of the last block's output for `scale` times the loss.
  Matrix run_head(Activations& saved, float scale) {
    const std::size_t begin = head_begin(stage_);
    const auto share = static_cast<float>(share_of(stage_, slice_));
    Matrix logits_grad =
        keep(cross_entropy_grad(saved.probabilities, saved.tokens.targets, scale * share));
    Matrix grad = run_head_norm(saved, pull_back(logits_grad, stage_.weights[begin + kHead]));
    work_.gemms.push_back({begin + kHead, std::move(saved.head_normed), std::move(logits_grad)});
    return grad;
  }

 private:
  Matrix keep(Matrix computed) const { return stored(std::move(computed), stage_.shape.precision); }

  /// Computes grad * weight^T: the gradient of the matrix that the weight multiplied.
  Matrix pull_back(const Matrix& grad, const Matrix& weight) const {
    return keep(product(whole(grad), transposed(whole(weight))));
  }

  /// The gradients of a slice's keys and values include those that later slices have added.
  Matrix pull_back_attention(std::size_t block, const BlockActivations& saved,
                             const Matrix& mixed_grad) {
    Matrix grad = attention_grad(known_qkv(saved, block, slice_), saved.attention, mixed_grad,
                                 attention_shape(stage_.shape, slice_));
    if (slice_ == nullptr) return grad;
    Matrix& known = slice_->context.qkv_grad[block];
    add(known, grad);
    known = keep(std::move(known));
    return take_rows(known, stage_.shape.sequence, slice_->positions);
  }

  /// Runs the backward of a norm and its gain, and collects the gain's gradient.
  Matrix pull_back_norm(std::size_t weight, const Matrix& input, const Matrix& grad) {
    work_.gains.push_back({weight, gain_grad(input, grad)});
    return norm_grad(input, stage_.weights[weight], grad);
  }

  const Stage& stage_;
  const Slice* slice_;
  WeightWork& work_;
};

void add_embedding_grad(const WeightWork& work, std::vector<Matrix>& gradients) {
  const Matrix& grad = work.embedded_grad;
  for (std::int32_t row = 0; row < grad.rows; ++row) {
    float* const token = gradients[kEmbedding].row(work.tokens[static_cast<std::size_t>(row)]);
    float* const position =
        gradients[kPosition].row(work.positions.begin + row % work.positions.count);
    for (std::int32_t column = 0; column < grad.columns; ++column) {
      token[column] += grad.row(row)[column];
      position[column] += grad.row(row)[column];
    }
  }
}

}  // namespace

Matrix join(const Stage& masters, const std::vector<Matrix>& inputs) {
  if (inputs.size() == 1) return inputs.front();
  const ReadStage read(masters);
  const std::size_t begin = join_begin(*read);
  Matrix sum = apply_gain(inputs.front(), (*read).weights[begin]);
  for (std::size_t input = 1; input < inputs.size(); ++input)
    add(sum, apply_gain(inputs[input], (*read).weights[begin + input]));
  return stored(std::move(sum), masters.shape.precision);
}

Matrix sum_grads(std::vector<Matrix> grads, Precision precision) {
  if (grads.size() == 1) return std::move(grads.front());
  Matrix sum = std::move(grads.front());
  for (std::size_t at = 1; at < grads.size(); ++at) add(sum, grads[at]);
  return stored(std::move(sum), precision);
}

StageOutput run_forward(const Stage& masters, Matrix input, const Tokens& tokens,
                        const Slice* slice) {
  const ReadStage read(masters);
  const Stage& stage = *read;
  StageOutput result;
  result.saved.tokens = tokens;
  if (stage.first) input = embed(stage, tokens, positions_of(stage, slice));
  for (std::int32_t block = 0; block < stage.shape.blocks_per_stage; ++block) {
    BlockOutput computed =
        run_block(stage, static_cast<std::size_t>(block), std::move(input), slice);
    input = std::move(computed.output);
    result.saved.blocks.push_back(std::move(computed.saved));
  }
  if (!stage.last) {
    result.output = std::move(input);
    return result;
  }
  const std::size_t begin = head_begin(stage);
  Activations& saved = result.saved;
  const auto keep = [&](Matrix computed) {
    return stored(std::move(computed), stage.shape.precision);
  };
  saved.head_normed = keep(apply_gain(normalize(input), stage.weights[begin + kHeadGain]));
  saved.head_input = std::move(input);
  if (!stage.has_head) {
    result.output = std::move(saved.head_normed);
    return result;
  }
  saved.probabilities =
      softmax(keep(product(whole(saved.head_normed), whole(stage.weights[begin + kHead]))));
  result.loss = cross_entropy(saved.probabilities, tokens.targets) * share_of(stage, slice);
  saved.probabilities = keep(std::move(saved.probabilities));
  return result;
}

void drop_attention(Activations& saved) {
  for (BlockActivations& block : saved.blocks) {
    block.attention = Matrix();
    block.mixed = Matrix();
  }
}

void recompute_attention(const Stage& stage, Activations& saved, const Slice* slice) {
  for (std::size_t block = 0; block < saved.blocks.size(); ++block)
    run_attention(stage, block, saved.blocks[block], slice);
}

StageGrad run_input_grad(const Stage& masters, Activations saved, Matrix output_grad, float scale,
                         const Slice* slice) {
  const ReadStage read(masters);
  const Stage& stage = *read;
  StageGrad result;
  StageBackward back(stage, slice, result.work);
  Matrix grad = !stage.last      ? std::move(output_grad)
                : stage.has_head ? back.run_head(saved, scale)
                                 : back.run_head_norm(saved, output_grad);
  for (std::size_t block = saved.blocks.size(); block-- > 0;)
    grad = back.run_block(block, std::move(saved.blocks[block]), std::move(grad));
  if (stage.first) {
    result.work.tokens = std::move(saved.tokens.inputs);
    result.work.positions = positions_of(stage, slice);
    result.work.embedded_grad = std::move(grad);
  } else {
    result.input_grads = back.split(saved, std::move(grad));
  }
  return result;
}

void run_weight_grad(const WeightWork& work, std::vector<Matrix>& gradients) {
  for (const WeightGemm& pair : work.gemms)
    multiply(transposed(whole(pair.left)), whole(pair.right), onto(gradients[pair.weight]),
             {1, true});
  for (const GainGrad& gain : work.gains) add(gradients[gain.weight], gain.grad);
  if (!work.tokens.empty()) add_embedding_grad(work, gradients);
}

}  // namespace bubblescope::exec
