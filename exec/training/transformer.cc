// The stages of a transformer, forward and backward.
#include "exec/training/transformer.h"

#include <cmath>
#include <random>
#include <utility>

#include "exec/training/layers.h"

namespace bubblescope {

namespace {

// The weights of a block, in their order.
enum BlockWeight : std::size_t { kGain, kQkv, kOut, kMiddleGain, kUp, kDown, kBlockWeights };
// The weights around the blocks.
enum FirstWeight : std::size_t { kEmbedding, kPosition, kFirstWeights };
enum LastWeight : std::size_t { kHeadGain, kHead };

std::size_t block_begin(const Stage& stage, std::size_t block) {
  return (stage.first ? std::size_t{kFirstWeights} : 0) + block * kBlockWeights;
}

std::size_t head_begin(const Stage& stage) {
  return block_begin(stage, static_cast<std::size_t>(stage.shape.blocks_per_stage));
}

AttentionShape attention_shape(const TransformerShape& shape) {
  return {shape.batch, shape.sequence, shape.heads, shape.width / shape.heads};
}

/// Normally distributed by sums of uniform numbers: the same on every system, as
/// std::normal_distribution is not.
float draw(std::mt19937_64& random) {
  double sum = 0;
  for (int at = 0; at < 12; ++at) sum += static_cast<double>(random() >> 11) * 0x1p-53;
  return static_cast<float>(sum - 6);
}

/// Adds weights to a stage that is being made.
class StageMaker {
 public:
  explicit StageMaker(const StagePlan& plan)
      : random_(plan.seed * 1'000'003 + static_cast<std::uint64_t>(plan.stage)) {
    stage_.shape = plan.shape;
    stage_.first = plan.stage == 0;
    stage_.last = plan.stage + 1 == plan.stages;
  }

  /// Entries vary so that a product of `columns` of them keeps its size.
  void add_matrix(const std::string& name, std::int32_t rows, std::int32_t columns) {
    Matrix weight(rows, columns);
    const float scale = 1 / std::sqrt(static_cast<float>(rows));
    for (float& value : weight.values) value = scale * draw(random_);
    add(name, std::move(weight));
  }

  void add_gain(const std::string& name) {
    Matrix gain(1, stage_.shape.width);
    for (float& value : gain.values) value = 1;
    add(name, std::move(gain));
  }

  Stage take() { return std::move(stage_); }

 private:
  void add(const std::string& name, Matrix weight) {
    stage_.names.push_back(name);
    stage_.weights.push_back(std::move(weight));
  }

  std::mt19937_64 random_;
  Stage stage_;
};

Matrix embed(const Stage& stage, const Tokens& tokens) {
  const TransformerShape& shape = stage.shape;
  Matrix output(shape.rows(), shape.width);
  for (std::int32_t row = 0; row < output.rows; ++row) {
    const float* const token =
        stage.weights[kEmbedding].row(tokens.inputs[static_cast<std::size_t>(row)]);
    const float* const position = stage.weights[kPosition].row(row % shape.sequence);
    for (std::int32_t column = 0; column < output.columns; ++column)
      output.row(row)[column] = token[column] + position[column];
  }
  return output;
}

struct BlockOutput {
  Matrix output;
  BlockActivations saved;
};

BlockOutput run_block(const Stage& stage, std::size_t block, Matrix input) {
  const Matrix* const weights = &stage.weights[block_begin(stage, block)];
  const AttentionShape attention = attention_shape(stage.shape);
  BlockActivations saved;
  saved.normed = apply_gain(normalize(input), weights[kGain]);
  saved.qkv = product(whole(saved.normed), whole(weights[kQkv]));
  saved.attention = attention_weights(saved.qkv, attention);
  saved.mixed = mix_values(saved.qkv, saved.attention, attention);
  saved.middle = input;
  multiply(whole(saved.mixed), whole(weights[kOut]), onto(saved.middle), {1, true});
  saved.middle_normed = apply_gain(normalize(saved.middle), weights[kMiddleGain]);
  saved.before_gelu = product(whole(saved.middle_normed), whole(weights[kUp]));
  saved.after_gelu = gelu(saved.before_gelu);
  Matrix output = saved.middle;
  multiply(whole(saved.after_gelu), whole(weights[kDown]), onto(output), {1, true});
  saved.input = std::move(input);
  return {std::move(output), std::move(saved)};
}

/// grad * weight^T: the gradient of what a weight multiplied.
Matrix pull_back(const Matrix& grad, const Matrix& weight) {
  return product(whole(grad), transposed(whole(weight)));
}

/// Goes back through a norm and its gain, and notes the gain's own gradient.
Matrix pull_back_norm(const Stage& stage, const Matrix& input, const Matrix& grad,
                      std::size_t weight, WeightWork& work) {
  work.gains.push_back({weight, gain_grad(input, grad)});
  return norm_grad(input, stage.weights[weight], grad);
}

/// The gradient of a block's input from that of its output.
Matrix run_block_back(const Stage& stage, std::size_t block, BlockActivations saved, Matrix grad,
                      WeightWork& work) {
  const std::size_t begin = block_begin(stage, block);
  const Matrix* const weights = &stage.weights[begin];
  Matrix up_grad = gelu_grad(saved.before_gelu, pull_back(grad, weights[kDown]));
  Matrix middle_grad = pull_back_norm(stage, saved.middle, pull_back(up_grad, weights[kUp]),
                                      begin + kMiddleGain, work);
  add(middle_grad, grad);
  work.products.push_back({begin + kDown, std::move(saved.after_gelu), std::move(grad)});
  work.products.push_back({begin + kUp, std::move(saved.middle_normed), std::move(up_grad)});
  Matrix qkv_grad =
      attention_grad(saved.qkv, saved.attention, pull_back(middle_grad, weights[kOut]),
                     attention_shape(stage.shape));
  Matrix result =
      pull_back_norm(stage, saved.input, pull_back(qkv_grad, weights[kQkv]), begin + kGain, work);
  add(result, middle_grad);
  work.products.push_back({begin + kQkv, std::move(saved.normed), std::move(qkv_grad)});
  work.products.push_back({begin + kOut, std::move(saved.mixed), std::move(middle_grad)});
  return result;
}

Matrix run_head_back(const Stage& stage, Activations& saved, float scale, WeightWork& work) {
  const std::size_t begin = head_begin(stage);
  Matrix logits_grad = cross_entropy_grad(saved.probabilities, saved.tokens.targets, scale);
  Matrix grad =
      pull_back_norm(stage, saved.head_input, pull_back(logits_grad, stage.weights[begin + kHead]),
                     begin + kHeadGain, work);
  work.products.push_back({begin + kHead, std::move(saved.head_normed), std::move(logits_grad)});
  return grad;
}

void add_embedding_grad(const WeightWork& work, std::vector<Matrix>& gradients) {
  const Matrix& grad = work.embedded_grad;
  for (std::int32_t row = 0; row < grad.rows; ++row) {
    float* const token = gradients[kEmbedding].row(work.tokens[static_cast<std::size_t>(row)]);
    float* const position = gradients[kPosition].row(row % gradients[kPosition].rows);
    for (std::int32_t column = 0; column < grad.columns; ++column) {
      token[column] += grad.row(row)[column];
      position[column] += grad.row(row)[column];
    }
  }
}

}  // namespace

Stage make_stage(const StagePlan& plan) {
  const TransformerShape& shape = plan.shape;
  StageMaker maker(plan);
  if (plan.stage == 0) {
    maker.add_matrix("embedding", shape.vocabulary, shape.width);
    maker.add_matrix("position", shape.sequence, shape.width);
  }
  for (std::int32_t block = 0; block < shape.blocks_per_stage; ++block) {
    const std::string prefix = "block" + std::to_string(block) + ".";
    maker.add_gain(prefix + "attention_gain");
    maker.add_matrix(prefix + "qkv", shape.width, 3 * shape.width);
    maker.add_matrix(prefix + "out", shape.width, shape.width);
    maker.add_gain(prefix + "mlp_gain");
    maker.add_matrix(prefix + "up", shape.width, shape.inner());
    maker.add_matrix(prefix + "down", shape.inner(), shape.width);
  }
  if (plan.stage + 1 == plan.stages) {
    maker.add_gain("head_gain");
    maker.add_matrix("head", shape.width, shape.vocabulary);
  }
  return maker.take();
}

std::vector<Matrix> zeros_like(const std::vector<Matrix>& weights) {
  std::vector<Matrix> zeros;
  for (const Matrix& weight : weights) zeros.emplace_back(weight.rows, weight.columns);
  return zeros;
}

StageOutput run_forward(const Stage& stage, Matrix input, const Tokens& tokens) {
  StageOutput result;
  result.saved.tokens = tokens;
  if (stage.first) input = embed(stage, tokens);
  for (std::int32_t block = 0; block < stage.shape.blocks_per_stage; ++block) {
    BlockOutput made = run_block(stage, static_cast<std::size_t>(block), std::move(input));
    input = std::move(made.output);
    result.saved.blocks.push_back(std::move(made.saved));
  }
  if (!stage.last) {
    result.output = std::move(input);
    return result;
  }
  const std::size_t begin = head_begin(stage);
  Activations& saved = result.saved;
  saved.head_normed = apply_gain(normalize(input), stage.weights[begin + kHeadGain]);
  saved.head_input = std::move(input);
  saved.probabilities =
      softmax(product(whole(saved.head_normed), whole(stage.weights[begin + kHead])));
  result.loss = cross_entropy(saved.probabilities, tokens.targets);
  return result;
}

StageGrad run_input_grad(const Stage& stage, Activations saved, Matrix output_grad, float scale) {
  StageGrad result;
  Matrix grad =
      stage.last ? run_head_back(stage, saved, scale, result.work) : std::move(output_grad);
  for (std::size_t block = saved.blocks.size(); block-- > 0;)
    grad =
        run_block_back(stage, block, std::move(saved.blocks[block]), std::move(grad), result.work);
  if (stage.first) {
    result.work.tokens = std::move(saved.tokens.inputs);
    result.work.embedded_grad = std::move(grad);
  } else {
    result.input_grad = std::move(grad);
  }
  return result;
}

void run_weight_grad(const WeightWork& work, std::vector<Matrix>& gradients) {
  for (const WeightProduct& pair : work.products)
    multiply(transposed(whole(pair.left)), whole(pair.right), onto(gradients[pair.weight]),
             {1, true});
  for (const GainGrad& gain : work.gains) add(gradients[gain.weight], gain.grad);
  if (!work.tokens.empty()) add_embedding_grad(work, gradients);
}

}  // namespace bubblescope
