// Launches the layers.
#include "exec/gpu/host/gpu_layers.h"

#include <string>

#include "sim/ir/counted.h"

namespace bubblescope::exec {

namespace {

TrainingIdentity identify(const GpuMachine& machine, std::int32_t rank, const LayerOptions& options,
                          std::int64_t blas_version) {
  const std::string library = "cuBLASLt " + std::to_string(blas_version);
  return {{"`attention`", options.attention == Attention::kFlash ? "flash" : "softmax"},
          {"`epilogue`", options.epilogue == Epilogue::kFused ? "fused" : "separate"},
          {"products by", library + " on " + machine.device_of(rank).name + ", " +
                              counted(machine.place(rank).multiprocessors, "multiprocessor")}};
}

}  // namespace

GpuLayers::GpuLayers(const GpuMachine& machine, std::int32_t rank, const LayerOptions& options)
    : stream(machine, rank, options),
      attention(stream, options.attention),
      gelu(stream, options.epilogue),
      computed_by(identify(machine, rank, options, stream.blas_version())) {}

GpuMatrix GpuLayers::embed(const GpuMatrix& embedding, const GpuMatrix& position,
                           const std::int32_t* tokens, std::int32_t rows) {
  const GpuMatrix target = stream.make(rows, embedding.columns);
  stream.launch(target,
                EmbedArguments{target.data, embedding.data, position.data, tokens, position.rows});
  return target;
}

void GpuLayers::embed_grad(const GpuMatrix& grad, const std::int32_t* tokens,
                           const GpuMatrix& embedding_grad, const GpuMatrix& position_grad) {
  stream.launch(grad, EmbedGradArguments{embedding_grad.floats(), position_grad.floats(), grad.data,
                                         tokens, position_grad.rows});
}

GpuMatrix GpuLayers::norm(const GpuMatrix& input, const GpuMatrix& gain) {
  const GpuMatrix target = stream.make(input.rows, input.columns);
  stream.launch(input, NormArguments{target.data, input.data, gain.data});
  return target;
}

NormGrad GpuLayers::norm_grad(const NormGradOperands& norm) {
  const GpuMatrix& input = norm.input;
  const GpuMatrix target =
      norm.target.data != nullptr ? norm.target : stream.make(input.rows, input.columns);
  const GpuMatrix inverses = stream.make_floats(input.rows, 1);
  stream.launch(input, NormGradArguments{target.data, input.data, norm.gain.data, norm.grad.data,
                                         norm.added.data, inverses.floats()});
  const GpuMatrix gain_grad = stream.make_floats(1, input.columns);
  stream.launch(
      input, GainGradArguments{gain_grad.floats(), input.data, norm.grad.data, inverses.floats()});
  stream.drop(inverses);
  return {target, gain_grad};
}

void GpuLayers::cross_entropy(const GpuMatrix& logits, const std::int32_t* targets, float* loss) {
  const GpuMatrix losses = stream.make_floats(1, logits.rows);
  stream.launch(logits, CrossEntropyArguments{logits.data, targets, losses.floats()});
  stream.launch(losses, MeanArguments{loss, losses.floats()});
  stream.drop(losses);
}

void GpuLayers::cross_entropy_grad(const GpuMatrix& probabilities, const std::int32_t* targets,
                                   float scale) {
  stream.launch(probabilities, CrossEntropyGradArguments{probabilities.data, targets, scale});
}

void GpuLayers::add(const GpuMatrix& to, const GpuMatrix& values) {
  stream.launch(values, AddArguments{to.floats(), values.floats()});
}

}  // namespace bubblescope::exec
