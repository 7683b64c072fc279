// Describes the assumptions behind a model's costs.
#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "sim/ir/counted.h"
#include "sim/model/expert_exchange.h"
#include "sim/model/layer_timer.h"
#include "sim/model/model_step.h"

namespace bubblescope::inline sim {

namespace {

std::string number(double value) {
  std::array<char, 32> text{};
  const auto written =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 4);
  return {text.data(), written.ptr};
}

std::string gibibytes(Bytes bytes) {
  return number(static_cast<double>(bytes) / (1 << 30)) + " GiB";
}

std::string link_text(const Link& link) {
  return to_text(link.latency) + " and " + number(link.bytes_per_second / 1e9) + " GB/s one way";
}

/// Returns a text such as "4096 tokens" or "2048 to 8192 tokens".
std::string tokens_text(const ModelOnDevices& on) {
  const std::vector<std::int64_t>& lengths = on.sequence_lengths;
  if (lengths.empty()) return counted(on.parallel.sequence, "token");
  const auto [shortest, longest] = std::minmax_element(lengths.begin(), lengths.end());
  const std::string shorter = *shortest < *longest ? std::to_string(*shortest) + " to " : "";
  return shorter + counted(*longest, "token");
}

std::string recompute_text(const Parallelism& parallel) {
  std::string text(name(parallel.recompute));
  const std::string layers = to_text(parallel.recomputed);
  if (parallel.recompute == Recompute::kFull && !layers.empty()) return text + " " + layers;
  if (parallel.recompute != Recompute::kSelective || parallel.modules.empty()) return text;
  const char* before = " of ";
  for (const Named<RecomputeModule>& known : kRecomputeModules)
    if (parallel.modules.has(known.choice)) {
      text += before + std::string(known.name);
      before = " + ";
    }
  return text;
}

std::string shards_text(const Parallelism& parallel) {
  if (!parallel.shard_ranks || parallel.zero_stage == 0 ||
      *parallel.shard_ranks == parallel.copies())
    return "";
  return " in groups of " + counted(*parallel.shard_ranks, "rank");
}

std::string parallel_text(const ModelOnDevices& on) {
  const Parallelism& parallel = on.parallel;
  return "tp " + std::to_string(parallel.tensor) + ", cp " + std::to_string(parallel.context) +
         ", ep " + std::to_string(parallel.expert) +
         (parallel.expert > 1 && std::max(parallel.expert_split(), parallel.tensor) > 1
              ? ", etp " + std::to_string(parallel.expert_split())
              : "") +
         ", dp " + std::to_string(parallel.data) + ", micro-batch size " +
         std::to_string(parallel.micro_batch_size) + ", " + tokens_text(on) +
         (on.trains ? ", recompute " + recompute_text(parallel) + ", ZeRO stage " +
                          std::to_string(parallel.zero_stage) + shards_text(parallel)
                    : "");
}

std::string prediction_text(const Transformer& model) {
  if (model.predictions == 0) return "";
  return ", and " + number(static_cast<double>(count_prediction_parameters(model)) / 1e9) +
         " billion that predict " + counted(model.predictions, "more token") +
         ", on the last stage";
}

std::string device_text(const ModelOnDevices& on) {
  return on.rank_gpus.empty() ? "" : "rates and links below are those of rank 0's device; ";
}

std::string gemm_text(const ModelOnDevices& on) {
  const KernelRates& kernels = on.gpu.kernels;
  std::string text = "GEMMs: 2 FLOPs per weight and token, in F, in I and in W; " +
                     number(on.gpu.sustained_flops() / 1e12) +
                     " TFLOP/s sustained (sustained_teraflops), and n / (n + " +
                     number(kernels.half_size) + ") of that for each side n (half_size)";
  if (!kernels.gemms.empty())
    text += ", corrected by the nearest of " + std::to_string(kernels.gemms.size()) +
            " GEMMs that were measured on the device";
  if (on.matrices == MatrixType::kFp8)
    text += "; in 8 bits " + number(kernels.fp8_gain) + " times as fast (fp8_gain), with " +
            number(on.assumptions.cast_bytes) + " bytes moved to cast a number (cast_bytes)";
  if (on.model.experts)
    text += "; grouped ones of experts at " + number(100 * on.assumptions.grouped_efficiency) +
            " % (grouped_efficiency) of the rate that their weights' sides allow, and " +
            number(100 * kernels.grouped_traffic) +
            " % of their memory traffic beside it (grouped_traffic); " +
            number(100 * on.assumptions.experts_fused) +
            " % of them is one fused kernel with activation function and casts (experts_fused)";
  return text;
}

std::string window_text(const Transformer& model) {
  if (model.local_layers == 0) return "";
  return "attention reaches " + counted(model.window, "token") + " in " +
         counted(model.local_layers, "layer") + "; ";
}

std::string kernels_of_attention(const ModelOnDevices& on) {
  if (LayerTimer(on).has_flash_2_alone()) return "with flash attention 2";
  if (on.assumptions.flash_attention_2 == 0)
    return on.gpu.generation == "blackwell" && on.assumptions.flash_attention_4 > 0
               ? "of which flash attention 4 reaches 1.25 times as much"
               : "with later kernels than flash attention 2";
  return on.gpu.generation == "blackwell"
             ? "of which flash attention 2 reaches no more than 355 TFLOP/s in any runtime"
             : "of which flash attention 2 reaches 1 / 1.6";
}

std::string attention_text(const ModelOnDevices& on) {
  const CostAssumptions& assumed = on.assumptions;
  if (!on.parallel.flash_attention)
    return "attention's core: scores written, masked, put through softmax and read; its backward "
           "is all in I, 2 times F";
  const KernelRates& kernels = on.gpu.kernels;
  return std::string("attention's core: ") +
         (assumed.causal ? "causal, half of the scores; " : "") + window_text(on.model) +
         "at most " + number(100 * kernels.attention_forward) + " % of the peak in F and " +
         number(100 * kernels.attention_backward) +
         " % in I (attention_forward, attention_backward), " + kernels_of_attention(on) +
         " (flash_attention_2, flash_attention_4), times " + number(assumed.attention_quality) +
         " in this runtime (attention_quality); its backward, " + number(assumed.flash_backward) +
         " times the FLOPs of F (flash_backward), is all in I";
}

/// When new or sharded weights are gathered; empty where every rank updates all of them.
std::string gathering_text(const ModelOnDevices& on) {
  const std::int32_t zero_stage = on.parallel.zero_stage;
  if (zero_stage == 0) return "";
  if (zero_stage >= 3) return "weights are gathered beside every F, and again beside I; ";
  return on.assumptions.gradients_exposed < 1
             ? "new weights are gathered while the first forward runs, with as much exposed; "
             : "new weights are gathered before the first forward; ";
}

std::string gradients_text(const ModelOnDevices& on) {
  std::string text = on.parallel.gradients == Gradients::kFp32 ? "gradients: reduced in 32 bits "
                                                               : "gradients: reduced in 16 bits ";
  const bool in_every_backward = on.parallel.zero_stage >= 2 && !on.parallel.whole_gradients;
  const double exposed = on.assumptions.gradients_exposed;
  if (in_every_backward)
    text += "beside every micro-batch's backward";
  else
    text += exposed < 1 ? "while the last micro-batch's backward runs"
                        : "after the last micro-batch's backward, all of it exposed "
                          "(gradients_exposed 1)";
  text += " (whole_gradients: 1 where they are whole until then, from ZeRO stage 2 on); ";
  if (in_every_backward)
    text +=
        "the rest, at least 6.25 %, is exposed (gradients_exposed: that part at a step's end); ";
  else if (exposed < 1)
    text += "the rest, at least " + number(100 * exposed) + " %, is exposed (gradients_exposed); ";
  text += gathering_text(on);
  text += "those of micro-batches are accumulated by the GEMMs of W";
  if (LayerTimer(on).adds_to_32_bits())
    text += ", which moves " + number(on.assumptions.gradient_bytes) +
            " bytes per weight beside their compute (gradient_bytes)";
  return text + " and by moving " + number(on.assumptions.accumulation_bytes) +
         " bytes per weight more (accumulation_bytes)";
}

std::string update_text(const Parallelism& parallel) {
  const UpdateBytes bytes = count_update_bytes(parallel);
  return "update: " + number(bytes.all()) + " bytes per parameter: Adam " + number(bytes.adam) +
         ", the norm " + number(bytes.norm) + ", clipping " + number(bytes.clipping) +
         ", clearing " + number(bytes.clearing);
}

std::string states_text(const ModelOnDevices& on) {
  const ParameterBytes bytes = count_state_bytes(on.parallel);
  return std::string("states: ") +
         (shards_master_weights(on.parallel) ? "no bytes of 16-bit weight but what is gathered, "
                                             : "2 bytes of weight, ") +
         number(bytes.gradient) + " of gradient, " + number(bytes.optimizer) +
         " of Adam per parameter, " + std::to_string(on.parallel.bytes_of_moment()) +
         " in each of two moments (moment_bytes) (arXiv 1910.02054, section 3); 2 GiB for the "
         "driver and the libraries (assumed); " +
         gibibytes(on.reserved_memory) + " of the " + gibibytes(on.gpu.memory) +
         " that a device has for a program reserved";
}

std::string model_text(const Transformer& model) {
  const double billions = static_cast<double>(count_total_parameters(model)) / 1e9;
  return "model: " + counted(model.layers, "layer") + " of width " + std::to_string(model.hidden) +
         ", " + number(billions) + " billion parameters" + prediction_text(model);
}

std::string gates_text(const ModelOnDevices& on) {
  if (!on.model.gated) return "";
  const std::string whose = on.assumptions.eager_kernels > 0 ? "PyTorch's own" : "fused";
  return "rotations and gates are " + whose + " kernels (eager_kernels); ";
}

std::string elementwise_text(const ModelOnDevices& on) {
  return "elementwise work: " + number(on.assumptions.elementwise_traffic) +
         " times what the kernels of arXiv 2205.05198 read and write (elementwise_traffic), over " +
         number(100 * on.assumptions.elementwise_efficiency) + " % (elementwise_efficiency) of " +
         number(on.gpu.memory_bytes_per_second / 1e12) +
         " TB/s (fitted to arXiv 2401.10241, table 9, and 2205.05198, table 4); " + gates_text(on) +
         "the loss moves " + number(on.assumptions.loss_forward_bytes) +
         " bytes per logit in F and " + number(on.assumptions.loss_backward_bytes) +
         " in the backward (loss_forward_bytes, loss_backward_bytes)";
}

std::string memory_text(const ModelOnDevices& on) {
  return "memory: GEMMs and optimizers read and write at " +
         number(100 * on.assumptions.memory_efficiency) + " % of that (memory_efficiency)";
}

std::string launches_text(const ModelOnDevices& on) {
  const CostAssumptions& assumed = on.assumptions;
  std::string text = "launches: " + number(assumed.forward_kernels) +
                     " kernels of a layer in F and in I (forward_kernels), 4 in W, " +
                     to_text(assumed.launch) +
                     " each (launch_us); a layer's F, backward or recomputation takes the host at "
                     "least " +
                     to_text(assumed.host_layer) + " (host_layer_us), with tensor ranks " +
                     to_text(assumed.host_tensor) +
                     " more for every doubling of their number (host_tensor_us), and a micro-batch "
                     "on a stage " +
                     to_text(assumed.host_pass) + " more (host_pass_us)";
  if (on.model.experts)
    text += ", a layer with experts " + to_text(assumed.host_experts) +
            " more (host_experts_us) and for every expert of a rank " +
            to_text(assumed.host_expert) + " (host_expert_us)";
  return text + "; " + number(100 * assumed.launch_blocking) +
         " % of the host's time adds to the device's (launch_blocking: 1 with "
         "CUDA_LAUNCH_BLOCKING=1), the rest runs beside it; CUDA graphs of whole iterations "
         "spare " +
         number(100 * assumed.iteration_graphs) + " % of it (iteration_graphs)";
}

std::string links_text(const Gpu& gpu) {
  const std::string node = " in a node of " + std::to_string(gpu.per_node);
  return "links: " + link_text(gpu.between_devices()) +
         (gpu.has_switch() ? node
                           : " to each device" + node + ", all of whose links collectives use") +
         ", of which collectives reach " + number(100 * gpu.kernels.ring_share) +
         " % (ring_share), " + link_text(gpu.outside) + " between nodes, " + link_text(gpu.host) +
         " to the host's memory; copies of activations use them too; rings take at least " +
         to_text(kRingStepInside) + " per step inside a node and " + to_text(kRingStepOutside) +
         " between nodes";
}

std::string dispatch_text(const ModelOnDevices& on) {
  if (!on.model.experts) return "";
  return std::string(dispatches_once(on)
                         ? "; tokens are sent once to every node and rank with some of their "
                           "experts (dispatch_once; ranks_per_token " +
                               number(on.assumptions.ranks_per_token) + ", 0: at random)"
                         : "; every copy of a token is sent to its expert (dispatch_once)") +
         "; they are weighed " + (on.assumptions.weighed_early > 0 ? "before" : "behind") +
         " the experts' last GEMM (weighed_early)" + ", and kernels that route them move " +
         number(on.assumptions.routing_bytes) +
         " bytes per number of a token and expert in F, twice that in the backward "
         "(routing_bytes)" +
         "; the busiest rank's experts have " + number(on.assumptions.expert_imbalance) +
         " times the mean of tokens (expert_imbalance)";
}

std::string messages_text(const CostAssumptions& assumed) {
  return "messages: " + number(100 * assumed.message_exposed) +
         " % of one blocks the op that sends it (message_exposed), and " +
         number(100 * assumed.receives_exposed) +
         " % of that also the op that receives it (receives_exposed); the rest is hidden behind "
         "compute";
}

std::string collectives_text(const ModelOnDevices& on) {
  const CostAssumptions& assumed = on.assumptions;
  return "collectives: of the tensor ranks " + number(100 * assumed.tensor_exposed) +
         " % is exposed (tensor_exposed), of the context ranks " +
         number(100 * assumed.context_exposed) +
         " % (context_exposed; PyTorch's ring: context_ring " + number(assumed.context_ring) +
         "), of the experts " + number(100 * assumed.expert_exposed) + " % (expert_exposed)" +
         (assumed.pairs_hide_exchange ? ", none in an overlapped pair" : "") +
         "; the hidden part takes " + number(100 * assumed.collective_sms) +
         " % of the compute beside it (collective_sms; 20 of 132 SMs in arXiv 2412.19437, section "
         "3.5.1)" +
         dispatch_text(on);
}

std::string parts_text(const ModelOnDevices& on) {
  std::string text =
      "parts: a layer's attention, network and exposed collectives, one after the other in ops "
      "that run alone";
  if (!on.parts->pair_order) return text;
  return text + "; those of an overlapped pair interleave" +
         (on.parts->pair_order->name.empty() ? " in the given order"
                                             : " in the order " + on.parts->pair_order->name) +
         ", and a collective takes its SMs from the compute beside it";
}

std::string activations_text(const Parallelism& parallel) {
  return std::string("activations: 16 bits, tensor by tensor (arXiv 2205.05198)") + ", " +
         counted(parallel.logit_bytes, "byte") + " per logit (logit_bytes)" +
         (parallel.flash_attention ? ", no scores (flash attention)" : "") +
         (parallel.sequence_parallel ? ", split over the tensor ranks throughout" : "");
}

/// How experts are divided, and why each is over so many ranks.
std::string experts_text(const ModelOnDevices& on) {
  const Parallelism& parallel = on.parallel;
  const std::int32_t split = parallel.expert_split();
  const std::string text =
      "experts: ep " + std::to_string(parallel.expert) + ", so that a rank has " +
      std::to_string(on.model.experts->count / parallel.expert) + " of " +
      std::to_string(on.model.experts->count) + "; etp " + std::to_string(split);
  if (parallel.expert_tensor) return text + ", as given";
  if (split == parallel.tensor) return text + ", as tp, which is Megatron-LM's default";
  return text + ", because ep does not divide dp times cp (" +
         std::to_string(std::int64_t{parallel.data} * parallel.context) + ")";
}

std::string recomputed_layers_text(const Parallelism& parallel) {
  const RecomputedLayers& recomputed = parallel.recomputed;
  const std::string number = std::to_string(recomputed.number);
  std::string text =
      parallel.keeps_layers()
          ? "recomputation: the first layers of every stage or chunk, up to " + number +
                ", each from its input; others save all"
          : "recomputation: all layers, in groups of " + number +
                " from the group's input; the last group of a stage or chunk may have fewer";
  if (parallel.layers_of_stage.empty() || !parallel.keeps_layers()) return text;
  std::int64_t covered = 0;
  std::int64_t all = 0;
  for (const std::int64_t layers : parallel.layers_of_stage) {
    covered += recomputed.covered(layers);
    all += layers;
  }
  return text + "; " + std::to_string(covered) + " of " + counted(all, "layer");
}

std::string layers_text(const SplitTrials& trials) {
  const std::string others = std::to_string(trials.count - 1);
  if (trials.shortest < trials.balanced)
    return "layers: by simulation of " + std::to_string(trials.count) +
           " splits: " + to_text(trials.shortest) + ", the balanced split " +
           to_text(trials.balanced);
  return "layers: balanced, " + to_text(trials.balanced) +
         (trials.count == 1 ? "; no other split was tried"
          : trials.count == 2
              ? "; one other split takes as long or longer, or does not fit"
              : "; " + others + " other splits take as long or longer, or do not fit");
}

}  // namespace

std::string describe_model(const ModelOnDevices& on) {
  std::string text = on.name + ", " + parallel_text(on);
  if (on.parts) text += ", ops in parts";
  return text;
}

std::vector<std::string> explain(const ModelOnDevices& on) {
  std::vector<std::string> lines{
      model_text(on.model),
      "parallel: " + parallel_text(on),
      "runtime: " + on.runtime +
          " sets the assumptions below; a name in brackets can be replaced (`assume` NAME=VALUE)",
      device_text(on) + gemm_text(on),
      attention_text(on),
      elementwise_text(on),
      memory_text(on),
      launches_text(on),
      links_text(on.gpu),
      messages_text(on.assumptions),
      collectives_text(on),
      gradients_text(on),
      update_text(on.parallel),
      states_text(on),
      activations_text(on.parallel),
  };
  if (on.model.experts && std::max(on.parallel.expert, on.parallel.tensor) > 1)
    lines.push_back(experts_text(on));
  if (on.trains && on.parallel.recompute == Recompute::kFull &&
      on.parallel.recomputed != RecomputedLayers{})
    lines.push_back(recomputed_layers_text(on.parallel));
  if (on.parts) lines.push_back(parts_text(on));
  if (on.trials) lines.push_back(layers_text(*on.trials));
  for (const std::string& source : on.sources) lines.push_back("source: " + source);
  return lines;
}

}  // namespace bubblescope::inline sim
