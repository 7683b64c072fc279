// The forward and backward of a stage.
#include "exec/gpu/host/gpu_stage.h"

#include <utility>

namespace bubblescope::exec {

namespace {

using namespace weight_order;

AttentionShape attention_shape(const TransformerShape& shape, const Positions& query_positions) {
  return {shape.batch, shape.sequence, shape.heads, shape.width / shape.heads, query_positions};
}

const GpuMatrix& value(const GpuStage& stage, std::size_t weight) {
  return stage.weights[weight].value;
}

/// Returns the queries, keys and values of a block computed so far.
const GpuMatrix& known_qkv(const GpuBlockActivations& saved, std::size_t block,
                           const GpuSliceContext* context) {
  return context != nullptr ? context->qkv[block] : saved.qkv;
}

/// Computes the attention weights and output from queries, keys and values.
void run_attention(GpuLayers& layers, const GpuMatrix& qkv, const AttentionShape& shape,
                   GpuBlockActivations& saved) {
  const AttentionOutput computed = layers.attention.attend(qkv, shape);
  saved.attention = computed.weights;
  saved.mixed = computed.mixed;
}

/// Saves everything except the output of the block.
GpuBlockActivations run_block(GpuLayers& layers, const GpuStage& stage, std::size_t block,
                              const GpuMatrix& input, const GpuForwardRun& run) {
  const std::size_t begin = block_begin(stage, block);
  const Positions& positions = run.tokens.positions;
  GpuBlockActivations saved;
  saved.input = input;
  saved.normed = layers.norm(input, value(stage, begin + kGain));
  if (run.context != nullptr)
    layers.stream.multiply_into(saved.normed, value(stage, begin + kQkv), run.context->qkv[block],
                                {stage.shape.sequence, positions});
  else
    saved.qkv = layers.stream.gemm({saved.normed}, {value(stage, begin + kQkv)});
  run_attention(layers, known_qkv(saved, block, run.context),
                attention_shape(stage.shape, positions), saved);
  saved.middle = layers.stream.make(input.rows, input.columns);
  layers.stream.multiply({saved.mixed}, {value(stage, begin + kOut)}, saved.middle, input);
  saved.middle_normed = layers.norm(saved.middle, value(stage, begin + kMiddleGain));
  const auto up = layers.gelu.gemm({saved.middle_normed}, {value(stage, begin + kUp)}, run.is_kept);
  saved.gelu_input = up.before;
  saved.gelu_output = up.after;
  return saved;
}

/// Runs the backward of a stage and collects the work of its weight gradients.
class BackwardRun {
 public:
  BackwardRun(GpuLayers& layers, const GpuStage& stage, const GpuInputGradRun& run)
      : layers_(layers), stage_(stage), run_(run) {}

  GpuMatrix run_head() {
    const std::size_t begin = head_begin(stage_);
    const GpuActivations& saved = run_.saved;
    const GpuMatrix logits_grad = saved.probabilities;
    layers_.cross_entropy_grad(logits_grad, run_.tokens.targets, run_.scale * share());
    const GpuMatrix normed_grad = pull_back(logits_grad, begin + kHead);
    const GpuMatrix grad = pull_back_norm(begin + kHeadGain, saved.head_input, normed_grad, {}, {});
    layers_.stream.drop(saved.head_input);
    work_.gemms.push_back({begin + kHead, saved.head_normed, logits_grad});
    return grad;
  }

  /// Returns the gradient of the block's input, written to `target` unless that is empty.
  GpuMatrix run_block(std::size_t block, const GpuMatrix& grad, const GpuMatrix& target) {
    const std::size_t begin = block_begin(stage_, block);
    const GpuBlockActivations& saved = run_.saved.blocks[block];
    const GpuMatrix middle_grad = run_gemms(begin, saved, grad);
    const GpuMatrix mixed_grad = pull_back(middle_grad, begin + kOut);
    const GpuMatrix qkv_grad = pull_back_attention(block, mixed_grad);
    for (const GpuMatrix* const done : {&mixed_grad, &saved.qkv, &saved.attention})
      layers_.stream.drop(*done);
    const GpuMatrix result = pull_back_norm(begin + kGain, saved.input,
                                            pull_back(qkv_grad, begin + kQkv), middle_grad, target);
    layers_.stream.drop(saved.input);
    work_.gemms.push_back({begin + kQkv, saved.normed, qkv_grad});
    work_.gemms.push_back({begin + kOut, saved.mixed, middle_grad});
    return result;
  }

  GpuWeightWork finish(const GpuMatrix& grad) && {
    if (stage_.first) work_.embedded_grad = grad;
    return std::move(work_);
  }

 private:
  /// The slice's fraction of the micro-batch's tokens, over which the loss is averaged.
  float share() const {
    return static_cast<float>(run_.tokens.positions.count) /
           static_cast<float>(stage_.shape.sequence);
  }

  /// The gradients of a slice's keys and values include those that later slices have added.
  GpuMatrix pull_back_attention(std::size_t block, const GpuMatrix& mixed_grad) {
    const GpuBlockActivations& saved = run_.saved.blocks[block];
    const AttentionShape shape = attention_shape(stage_.shape, run_.tokens.positions);
    if (run_.context == nullptr) {
      const GpuMatrix grad = layers_.stream.make(saved.qkv.rows, saved.qkv.columns);
      layers_.attention.pull_back({saved.qkv, saved.attention, saved.mixed, mixed_grad, grad},
                                  shape);
      return grad;
    }
    const GpuMatrix& known = run_.context->qkv_grad[block];
    layers_.attention.pull_back(
        {run_.context->qkv[block], saved.attention, saved.mixed, mixed_grad, known, true}, shape);
    return layers_.stream.take_rows(known, {stage_.shape.sequence, run_.tokens.positions});
  }

  /// Runs the backward of the MLP half of a block, down to the output of attention.
  GpuMatrix run_gemms(std::size_t begin, const GpuBlockActivations& saved, const GpuMatrix& grad) {
    const GpuMatrix up_grad =
        layers_.gelu.gemm_grad({grad}, transposed(value(stage_, begin + kDown)), saved.gelu_input);
    layers_.stream.drop(saved.gelu_input);
    const GpuMatrix middle_grad = pull_back_norm(begin + kMiddleGain, saved.middle,
                                                 pull_back(up_grad, begin + kUp), grad, {});
    layers_.stream.drop(saved.middle);
    work_.gemms.push_back({begin + kDown, saved.gelu_output, grad});
    work_.gemms.push_back({begin + kUp, saved.middle_normed, up_grad});
    return middle_grad;
  }

  /// Computes grad * weight^T: the gradient of the matrix that the weight multiplied.
  GpuMatrix pull_back(const GpuMatrix& grad, std::size_t weight) {
    return layers_.stream.gemm({grad}, transposed(value(stage_, weight)));
  }

  /// Runs the backward of a norm and its gain, and collects the gain's gradient. Frees `grad`.
  GpuMatrix pull_back_norm(std::size_t weight, const GpuMatrix& input, const GpuMatrix& grad,
                           const GpuMatrix& added, const GpuMatrix& target) {
    const NormGrad computed =
        layers_.norm_grad({input, value(stage_, weight), grad, added, target});
    work_.gains.push_back({weight, computed.gain});
    layers_.stream.drop(grad);
    return computed.input;
  }

  GpuLayers& layers_;
  const GpuStage& stage_;
  const GpuInputGradRun& run_;
  GpuWeightWork work_;
};

}  // namespace

std::vector<GpuMatrix*> GpuActivations::matrices() {
  std::vector<GpuMatrix*> all;
  for (GpuBlockActivations& block : blocks)
    all.insert(all.end(),
               {&block.input, &block.normed, &block.qkv, &block.attention, &block.mixed,
                &block.middle, &block.middle_normed, &block.gelu_input, &block.gelu_output});
  all.insert(all.end(), {&head_input, &head_normed, &probabilities});
  std::erase_if(all, [](const GpuMatrix* matrix) { return matrix->rows == 0; });
  return all;
}

Bytes GpuActivations::bytes() const {
  Bytes bytes = 0;
  GpuActivations same = *this;
  for (const GpuMatrix* const matrix : same.matrices()) bytes += matrix->bytes();
  return bytes;
}

Bytes GpuWeightWork::bytes() const {
  Bytes bytes = embedded_grad.bytes();
  for (const GpuWeightGemm& pair : gemms) bytes += pair.left.bytes() + pair.right.bytes();
  for (const GpuGainGrad& gain : gains) bytes += gain.grad.bytes();
  return bytes;
}

GpuActivations run_forward(GpuLayers& layers, const GpuStage& stage, const GpuForwardRun& run) {
  GpuActivations saved;
  const GpuTokens& tokens = run.tokens;
  const GpuMatrix& output = run.output;
  GpuMatrix between = run.input;
  if (stage.first)
    between = layers.embed(
        value(stage, kEmbedding),
        rows_of(value(stage, kPosition), tokens.positions.begin, tokens.positions.count),
        tokens.inputs, stage.shape.batch * tokens.positions.count);
  const auto blocks = static_cast<std::size_t>(stage.shape.blocks_per_stage);
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t begin = block_begin(stage, block);
    saved.blocks.push_back(run_block(layers, stage, block, between, run));
    const bool leaves = block + 1 == blocks && !stage.last;
    if (leaves && output.data == nullptr) break;
    between = leaves ? output : layers.stream.make(between.rows, between.columns);
    layers.stream.multiply({saved.blocks.back().gelu_output}, {value(stage, begin + kDown)},
                           between, saved.blocks.back().middle);
  }
  if (!stage.last) return saved;
  const std::size_t begin = head_begin(stage);
  saved.head_input = between;
  saved.head_normed = layers.norm(between, value(stage, begin + kHeadGain));
  saved.probabilities = layers.stream.gemm({saved.head_normed}, {value(stage, begin + kHead)});
  layers.cross_entropy(saved.probabilities, tokens.targets, tokens.loss);
  return saved;
}

GpuWeightWork run_input_grad(GpuLayers& layers, const GpuStage& stage, const GpuInputGradRun& run) {
  BackwardRun back(layers, stage, run);
  GpuMatrix grad = stage.last ? back.run_head() : run.output_grad;
  for (std::size_t block = run.saved.blocks.size(); block-- > 0;)
    grad = back.run_block(block, grad, block == 0 ? run.input_grad : GpuMatrix());
  return std::move(back).finish(grad);
}

void run_weight_grad(GpuLayers& layers, const GpuStage& stage, const GpuWeightWork& work,
                     const GpuTokens& tokens) {
  for (const GpuWeightGemm& pair : work.gemms) {
    const GpuMatrix& grad = stage.weights[pair.weight].grad;
    layers.stream.multiply(transposed(pair.left), {pair.right}, grad, grad);
    layers.stream.drop(pair.left);
    layers.stream.drop(pair.right);
  }
  for (const GpuGainGrad& gain : work.gains) {
    layers.add(stage.weights[gain.weight].grad, gain.grad);
    layers.stream.drop(gain.grad);
  }
  if (!stage.first) return;
  layers.embed_grad(
      work.embedded_grad, tokens.inputs, stage.weights[kEmbedding].grad,
      rows_of(stage.weights[kPosition].grad, tokens.positions.begin, tokens.positions.count));
  layers.stream.drop(work.embedded_grad);
}

void drop_attention(RankStream& stream, GpuActivations& saved) {
  for (GpuBlockActivations& block : saved.blocks)
    for (GpuMatrix* const matrix : {&block.attention, &block.mixed})
      stream.drop(std::exchange(*matrix, GpuMatrix()));
}

void make_attention(GpuLayers& layers, const GpuStage& stage, GpuActivations& saved,
                    const Positions& positions, const GpuSliceContext* context) {
  const AttentionShape shape = attention_shape(stage.shape, positions);
  for (std::size_t block = 0; block < saved.blocks.size(); ++block)
    run_attention(layers, known_qkv(saved.blocks[block], block, context), shape,
                  saved.blocks[block]);
}

GpuSliceContext make_context(RankStream& stream, const GpuStage& stage) {
  GpuSliceContext context;
  for (std::int32_t block = 0; block < stage.shape.blocks_per_stage; ++block)
    for (auto* const matrices : {&context.qkv, &context.qkv_grad}) {
      matrices->push_back(stream.make(stage.shape.rows(), 3 * stage.shape.width));
      stream.clear(matrices->back());
    }
  return context;
}

void drop(RankStream& stream, const GpuSliceContext& context) {
  for (const auto* const matrices : {&context.qkv, &context.qkv_grad})
    for (const GpuMatrix& matrix : *matrices) stream.drop(matrix);
}

void drop(RankStream& stream, GpuActivations saved) {
  for (const GpuMatrix* const matrix : saved.matrices()) stream.drop(*matrix);
}

}  // namespace bubblescope::exec
