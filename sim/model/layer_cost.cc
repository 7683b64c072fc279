// A roofline model: a GEMM takes the longer of the times for its FLOPs and for its bytes.
#include "sim/model/layer_cost.h"

#include <algorithm>
#include <cmath>

#include "sim/model/layer_gemms.h"
#include "sim/model/layer_recompute.h"
#include "sim/model/layer_timer.h"
#include "sim/model/moved_numbers.h"

namespace bubblescope::inline sim {

GroupLink find_group_link(const Gpu& gpu, std::int32_t ranks, std::int32_t stride) {
  const bool one_node = std::int64_t{ranks} * stride <= gpu.per_node;
  const std::int32_t members = one_node ? ranks : std::max(1, gpu.per_node / stride);
  const Link near = gpu.between_devices();
  const Link inside{near.latency,
                    gpu.links(members) * gpu.kernels.ring_share * near.bytes_per_second};
  if (one_node) return {inside, (ranks - 1) * kRingStepInside};
  const std::int32_t nodes = (ranks + members - 1) / members;
  return {{gpu.outside.latency, members == 1 ? gpu.outside.bytes_per_second
                                             : std::min(inside.bytes_per_second,
                                                        members * gpu.outside.bytes_per_second)},
          (nodes - 1) * kRingStepOutside + (ranks - nodes) * kRingStepInside};
}

std::vector<Bytes> ModelOnDevices::usable_memories(std::int32_t ranks) const {
  std::vector<Bytes> usable;
  for (std::int32_t rank = 0; rank < ranks; ++rank) usable.push_back(usable_memory(rank));
  return usable;
}

Link find_rank_link(const ModelOnDevices& on, std::int32_t from, std::int32_t to) {
  const Gpu& near = on.gpu_of(from);
  const Gpu& far = on.gpu_of(to);
  if (&near != &far && near != far)
    return {std::max(near.outside.latency, far.outside.latency),
            std::min(near.outside.bytes_per_second, far.outside.bytes_per_second)};
  const std::int64_t stride =
      std::int64_t{on.parallel.tensor} * on.parallel.context * on.parallel.data;
  const bool one_node = from * stride / near.per_node == to * stride / near.per_node;
  return one_node ? near.between_devices() : near.outside;
}

double exposed_exchange_time(const ModelOnDevices& on, std::int64_t layer) {
  return has_experts(on.model, layer) ? LayerTimer(on).expert_collectives() : 0;
}

namespace {

/// Collectives that a layer's F, and again its I, waits for, without those of context ranks.
double exposed_waits(const ModelOnDevices& on, const LayerTimer& timer, std::int64_t layer) {
  const bool with_experts = has_experts(on.model, layer);
  const bool around_network =
      !with_experts || on.parallel.expert_split() > 1 || on.model.experts->shared > 0;
  return timer.tensor_collectives(around_network) + (with_experts ? timer.expert_collectives() : 0);
}

/// The host needs 400 us for the 30 launches of a dense layer, which is so much for each.
constexpr double kHostLaunch = 14'000;
/// The kernels of the router, of the exchange and around experts are small: each takes half of the
/// time in which a large one occupies all SMs and drains them.
constexpr double kSmallKernel = 0.5;

/// Returns the time that the host takes for launches that only layers with experts need, in F or in
/// I.
double host_experts_time(const ModelOnDevices& on, double of_experts) {
  const double local = static_cast<double>(on.model.experts->count) / on.parallel.expert;
  return static_cast<double>(on.assumptions.host_experts) +
         of_experts * local * static_cast<double>(on.assumptions.host_expert);
}

/// The device's time for the same launches. One fused kernel has none for single experts.
double small_kernels_time(const ModelOnDevices& on, std::int64_t layer) {
  if (!has_experts(on.model, layer)) return 0;
  const double launches = host_experts_time(on, 1 - on.assumptions.experts_fused) / kHostLaunch;
  return launches * kSmallKernel * static_cast<double>(on.assumptions.launch);
}

/// Kernels around the experts that are limited by memory.
struct ExpertMoves {
  double forward = 0;
  double backward = 0;
};

/// Megatron-Core adds each expert's bias times the router's 32-bit weight in kernels of their own
/// (core/transformer/moe/experts.py, _apply_bias): product, sum, concatenation and cast move 28
/// bytes per number in F; their gradients, with sums over tokens and over numbers, 40. It also
/// clamps gate and input of the activation in two kernels and joins them in a third
/// (core/fusions/fused_bias_geglu.py, weighted_bias_quick_geglu_impl): 8 numbers of 16 bits move
/// per number of the activation in F; their gradients, 6, and joining these, 4.
ExpertMoves expert_moves(const ModelOnDevices& on, const LayerTimer& timer, std::int64_t layer) {
  if (!has_experts(on.model, layer)) return {};
  const double permuted = timer.permutation();
  const double routed = on.assumptions.routing_bytes;
  const auto with_biases = [&](double output_bytes, double activation_bytes) {
    const std::int64_t inner = on.model.experts->feed_forward / on.parallel.expert_split();
    return permuted + timer.expert_biases(output_bytes, on.model.hidden) +
           (1 - on.assumptions.experts_fused) * timer.expert_biases(activation_bytes, inner);
  };
  return {with_biases(28, 16) + timer.routing(routed),
          with_biases(40, 20) + timer.routing(2 * routed)};
}

}  // namespace

PhaseTimes estimate_host_times(const ModelOnDevices& on, const LaunchedLayers& layers) {
  const CostAssumptions& assumed = on.assumptions;
  const double doublings = std::log2(static_cast<double>(on.parallel.tensor));
  const double layer = static_cast<double>(assumed.host_layer) +
                       doublings * static_cast<double>(assumed.host_tensor);
  double pass = layers.all * layer + static_cast<double>(assumed.host_pass);
  if (layers.experts > 0) pass += layers.experts * host_experts_time(on, 1);
  pass *= 1 - assumed.iteration_graphs;
  const double again = on.parallel.recompute == Recompute::kFull ? layers.covered : 0;
  return {pass, (1 + again) * pass, 0};
}

PhaseTimes apply_host_limit(const ModelOnDevices& on, PhaseTimes times,
                            const LaunchedLayers& layers) {
  const PhaseTimes host = estimate_host_times(on, layers);
  const double waited = on.assumptions.launch_blocking;
  times.forward = std::max(times.forward + waited * host.forward, host.forward);
  times.input_grad =
      std::max(times.input_grad + waited * host.input_grad, host.input_grad - times.weight_grad);
  return times;
}

PhaseTimes estimate_layer_times(const ModelOnDevices& on, std::int64_t layer) {
  const LayerTimer timer(on);
  const PhaseTimes gemms = layer_gemm_times(on, timer, layer);
  const double inner = unfused_width(on, layer);
  const CastNumbers casts = cast_numbers(on.model, layer, inner);
  const double waits = exposed_waits(on, timer, layer);
  const ExpertMoves moves = expert_moves(on, timer, layer);
  const double launches = timer.launches(1) + small_kernels_time(on, layer);
  PhaseTimes times;
  times.forward = gemms.forward + timer.core_forward() +
                  timer.scores(score_bytes_forward(on.model)) + timer.cast(casts.forward) +
                  timer.elementwise(moved_forward(on.model, inner)) +
                  timer.eager(moved_eagerly_forward(on.model, inner)) + moves.forward + launches +
                  waits + timer.context_forward() + timer.ring_forward();
  times.input_grad =
      gemms.input_grad + timer.core_backward() + timer.scores(score_bytes_backward(on.model)) +
      timer.cast(casts.backward) + timer.elementwise(moved_backward(on.model, inner)) +
      timer.eager(moved_eagerly_backward(on.model, inner)) + moves.backward + launches + waits +
      timer.regather_time() + timer.context_backward() + timer.ring_backward();
  times.weight_grad = gemms.weight_grad + timer.launches(4 / on.assumptions.forward_kernels);
  times.input_grad += estimate_recompute_time(on, layer, times.forward);
  return times;
}

PhaseTimes estimate_attention_times(const ModelOnDevices& on) {
  const LayerTimer timer(on);
  const PhaseTimes gemms = attention_gemm_times(on, timer);
  const auto hidden = static_cast<double>(on.model.hidden);
  const HeadWidths heads = widths_of(on.model);
  const auto moved = [&timer](MovedNumbers numbers) {
    numbers.around /= 2;  // one norm and one residual of two
    return timer.elementwise(numbers);
  };
  const double launches = timer.launches(0.5);
  return {gemms.forward + timer.core_forward() + timer.scores(score_bytes_forward(on.model)) +
              timer.cast({hidden, heads.queries}) + moved(moved_forward(on.model, 0)) +
              timer.eager(moved_eagerly_forward(on.model, 0)) + timer.ring_forward() + launches,
          gemms.input_grad + timer.core_backward() + timer.scores(score_bytes_backward(on.model)) +
              timer.cast({hidden, heads.all}) + moved(moved_backward(on.model, 0)) +
              timer.eager(moved_eagerly_backward(on.model, 0)) + timer.ring_backward() + launches,
          gemms.weight_grad + timer.launches(2 / on.assumptions.forward_kernels)};
}

PhaseTimes estimate_embedding_times(const ModelOnDevices& on) {
  const LayerTimer timer(on);
  const double numbers = timer.tokens() * static_cast<double>(on.model.hidden);
  const double lookup = timer.moved(4 * timer.per_norm_rank(numbers)) + timer.launches(0.2);
  return {lookup, 0, lookup};
}

PhaseTimes estimate_head_times(const ModelOnDevices& on) {
  const LayerTimer timer(on);
  const double columns = timer.per_tensor_rank(static_cast<double>(on.model.vocabulary));
  const PhaseTimes gemm =
      timer.gemm16(timer.tokens(), static_cast<double>(on.model.hidden), columns);
  const double logits = timer.tokens() * columns;
  const double loss = timer.moved(on.assumptions.loss_forward_bytes * logits);
  const double gradient = timer.moved(on.assumptions.loss_backward_bytes * logits);
  return gemm + PhaseTimes{loss + timer.launches(0.5), gradient + timer.launches(0.3),
                           timer.launches(0.1)};
}

double estimate_accumulation_time(const ModelOnDevices& on, double parameters) {
  return LayerTimer(on).memory(on.assumptions.accumulation_bytes * parameters);
}

PhaseTimes estimate_prediction_times(const ModelOnDevices& on) {
  PhaseTimes sum;
  const LayerTimer timer(on);
  const auto hidden = static_cast<double>(on.model.hidden);
  const PhaseTimes projection =
      timer.gemm(timer.tokens(), 2 * hidden, timer.per_tensor_rank(hidden));
  const PhaseTimes layer = estimate_layer_times(
      on.parallel.keeps_layers() ? without_recomputation(on) : on, on.model.layers - 1);
  for (std::int64_t module = 0; module < on.model.predictions; ++module) {
    sum += layer;
    sum += projection;
    sum += estimate_embedding_times(on);
    sum += estimate_head_times(on);
  }
  return sum;
}

double compute_model_flops_per_sample(const Transformer& model, std::int64_t sequence,
                                      bool causal) {
  const double length = static_cast<double>(sequence);
  const double rotary = model.latent ? static_cast<double>(model.latent->rotary_size) : 0;
  const double width =
      static_cast<double>(model.heads) * (2 * static_cast<double>(model.head_size) + rotary);
  const std::int64_t more = model.predictions;
  double per_token =
      static_cast<double>((1 + more) * count_head_parameters(model) +
                          more * (count_prediction_projection_parameters(model) +
                                  count_layer_parameters(model, model.layers - 1).active()));
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    per_token += static_cast<double>(count_layer_parameters(model, layer).active());
  const double core = static_cast<double>(model.layers + more) *
                      (causal ? estimate_attended_share(model, sequence) : 2) * length * length *
                      width;
  return 3 * (2 * length * per_token + core);
}

ModelRates compute_model_rates(const ModelOnDevices& on, const Shape& shape, Nanos step) {
  const Parallelism& parallel = on.parallel;
  const double seconds = static_cast<double>(step) / 1e9;
  const double samples = static_cast<double>(parallel.micro_batch_size) * parallel.data;
  double tokens = 0;
  double flops = 0;
  const auto add = [&](std::int64_t sequence, double sequences) {
    tokens += static_cast<double>(sequence) * sequences;
    flops += compute_model_flops_per_sample(on.model, sequence, on.assumptions.causal) * sequences;
  };
  if (on.sequence_lengths.empty()) add(parallel.sequence, samples * shape.microbatches);
  for (const std::int64_t sequence : on.sequence_lengths) add(sequence, samples);
  if (!on.trains) flops /= 3;  // forwards alone
  ModelRates rates;
  rates.devices =
      static_cast<double>(parallel.tensor) * parallel.context * shape.ranks * parallel.data;
  rates.tokens_per_second = tokens / seconds;
  double peaks = 0;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) peaks += on.gpu_of(rank).peak_flops;
  rates.mfu = flops / (seconds * rates.devices / shape.ranks * peaks);
  return rates;
}

}  // namespace bubblescope::inline sim
