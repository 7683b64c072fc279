// The assumptions of a model's costs, in words.
#include <array>
#include <charconv>
#include <string>

#include "sim/model/model_step.h"

namespace bubblescope {

namespace {

std::string number(double value) {
  std::array<char, 32> text{};
  const auto written =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 4);
  return {text.data(), written.ptr};
}

std::string link_text(const Link& link) {
  return to_text(link.latency) + " and " + number(link.bytes_per_second / 1e9) + " GB/s one way";
}

std::string parallel_text(const Parallelism& parallel) {
  return "tp " + std::to_string(parallel.tensor) + ", cp " + std::to_string(parallel.context) +
         ", ep " + std::to_string(parallel.expert) + ", dp " + std::to_string(parallel.data) +
         ", micro-batch size " + std::to_string(parallel.micro_batch_size) + ", " +
         std::to_string(parallel.sequence) + " tokens, recompute " +
         std::string(name(parallel.recompute)) + ", ZeRO stage " +
         std::to_string(parallel.zero_stage);
}

}  // namespace

std::vector<std::string> explain(const ModelOnDevices& on) {
  const CostAssumptions& assumed = on.assumptions;
  const Gpu& gpu = on.gpu;
  const double billions = static_cast<double>(total_parameters(on.model)) / 1e9;
  return {
      "model: " + std::to_string(on.model.layers) + " layers of " +
          std::to_string(on.model.hidden) + ", " + number(billions) + " billion parameters",
      "parallel: " + parallel_text(on.parallel),
      "products: 2 FLOPs per weight and token, in F, in I and in W; " +
          number(gpu.reachable_flops / 1e12) + " of " + number(gpu.peak_flops / 1e12) +
          " TFLOP/s are reachable, and r / (r + " + number(assumed.half_rate_size) +
          ") of that with r rows or columns",
      std::string("attention's core: ") + (assumed.causal ? "causal, half of the scores; " : "") +
          number(100 * assumed.core_rate) + " % of the reachable rate; its backward is all in I, " +
          number(on.parallel.flash_attention ? assumed.flash_backward : 2) + " times F",
      "elementwise work: bytes over " + number(100 * assumed.memory_rate) + " % of " +
          number(gpu.memory_bytes_per_second / 1e12) + " TB/s; twice as much in I as in F",
      "launches: " + number(assumed.forward_kernels) +
          " kernels of a layer in F and in I, 4 in W, " + to_text(assumed.launch) + " each",
      "links: " + link_text(gpu.inside) + " in a node of " + std::to_string(gpu.per_node) + ", " +
          link_text(gpu.outside) + " between nodes",
      "collectives: of the tensor ranks " + number(100 * assumed.tensor_exposed) +
          " % is waited for, of the context ranks " + number(100 * assumed.context_exposed) +
          " %, of the experts " + number(100 * assumed.expert_exposed) + " %",
      std::string("gradients: reduced in 32 bits while the last micro-batch's backward runs; ") +
          "the rest, at least a sixteenth, is waited for; new weights are gathered while the first "
          "forward runs",
      std::string("states: 2 bytes of weight, 4 of gradient, 12 of Adam per parameter; ") +
          "2 GiB for the driver and the libraries",
      std::string("activations: 16 bits, tensor by tensor (arXiv 2205.05198)") +
          (on.parallel.flash_attention ? ", no scores (flash attention)" : "") +
          (on.parallel.sequence_parallel ? ", split over the tensor ranks throughout" : ""),
  };
}

}  // namespace bubblescope
