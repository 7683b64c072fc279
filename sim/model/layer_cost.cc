// A roofline model: a GEMM takes the longer of the times for its FLOPs and for its bytes.
#include "sim/model/layer_cost.h"

#include <algorithm>
#include <cmath>

#include "sim/model/expert_exchange.h"
#include "sim/model/layer_timer.h"

namespace bubblescope::inline sim {

namespace {

/// The GEMMs of latent attention that give queries, keys and values their full size.
PhaseTimes up_projection_times(const ModelOnDevices& on, const LayerTimer& timer) {
  const Transformer& model = on.model;
  const LatentAttention& latent = *model.latent;
  const auto split = [&](std::int64_t width) {
    return timer.per_tensor_rank(static_cast<double>(width));
  };
  const std::int64_t from = latent.query_rank > 0 ? latent.query_rank : model.hidden;
  return timer.gemm(timer.tokens(), static_cast<double>(from),
                    split(model.heads * (model.head_size + latent.rotary_size))) +
         timer.gemm(timer.tokens(), static_cast<double>(latent.key_value_rank),
                    split(model.heads * (model.head_size + latent.value_size)));
}

/// The GEMMs around the core of attention.
PhaseTimes attention_gemm_times(const ModelOnDevices& on, const LayerTimer& timer) {
  const Transformer& model = on.model;
  const auto hidden = static_cast<double>(model.hidden);
  const auto split = [&](std::int64_t width) {
    return timer.per_tensor_rank(static_cast<double>(width));
  };
  const double rows = timer.tokens();
  if (!model.latent)
    return timer.gemm(rows, hidden,
                      split(model.head_size * (model.heads + 2 * model.key_value_heads))) +
           timer.gemm(rows, split(model.head_size * model.heads), hidden);
  const LatentAttention& latent = *model.latent;
  const auto query_rank = static_cast<double>(latent.query_rank);
  const PhaseTimes down =
      latent.query_rank > 0 ? timer.gemm(rows, hidden, query_rank) : PhaseTimes{};
  return down + up_projection_times(on, timer) +
         timer.gemm(rows, hidden, static_cast<double>(latent.key_value_rank + latent.rotary_size)) +
         timer.gemm(rows, split(model.heads * latent.value_size), hidden);
}

/// The GEMMs of a feed-forward network with an inner width.
PhaseTimes network_gemm_times(const ModelOnDevices& on, const LayerTimer& timer, double width) {
  if (width == 0) return {};
  const auto hidden = static_cast<double>(on.model.hidden);
  return timer.gemm(timer.tokens(), hidden, (on.model.gated ? 2 : 1) * width) +
         timer.gemm(timer.tokens(), width, hidden);
}

/// The routed experts that a rank holds, as grouped GEMMs.
PhaseTimes expert_gemm_times(const ModelOnDevices& on, const LayerTimer& timer) {
  const Experts& experts = *on.model.experts;
  const auto hidden = static_cast<double>(on.model.hidden);
  const double parts = on.parallel.expert_split();
  const double local = static_cast<double>(experts.count) / on.parallel.expert;
  const double width = static_cast<double>(experts.feed_forward) / parts;
  const double into = (on.model.gated ? 2 : 1) * width;
  // Each rank of a tensor group sends a part of the group's tokens to the experts.
  const double rows = timer.per_tensor_rank(timer.tokens() * parts) *
                      static_cast<double>(experts.per_token) / local *
                      on.assumptions.expert_imbalance;
  const auto both = [&](GemmPass pass) {
    return timer.grouped_gemm(local, {pass, rows, hidden, into}) +
           timer.grouped_gemm(local, {pass, rows, width, hidden});
  };
  return {both(GemmPass::kForward), both(GemmPass::kInputGrad), both(GemmPass::kWeightGrad)};
}

/// All GEMMs of a layer.
PhaseTimes gemm_times(const ModelOnDevices& on, const LayerTimer& timer, std::int64_t layer) {
  const PhaseTimes attention = attention_gemm_times(on, timer);
  const auto split = [&](std::int64_t width) {
    return timer.per_tensor_rank(static_cast<double>(width));
  };
  if (!has_experts(on.model, layer))
    return attention + network_gemm_times(on, timer, split(on.model.feed_forward));
  const Experts& experts = *on.model.experts;
  return attention + network_gemm_times(on, timer, split(experts.shared * experts.feed_forward)) +
         timer.gemm16(timer.tokens(), static_cast<double>(on.model.hidden),
                      static_cast<double>(experts.count)) +
         expert_gemm_times(on, timer);
}

double inner_width(const Transformer& model, std::int64_t layer) {
  if (!has_experts(model, layer)) return static_cast<double>(model.feed_forward);
  return static_cast<double>((model.experts->per_token + model.experts->shared) *
                             model.experts->feed_forward);
}

/// Widths of a token's queries, keys and values.
struct HeadWidths {
  double queries = 0;
  double keys = 0;
  double all = 0;
};

HeadWidths widths_of(const Transformer& model) {
  const std::int64_t rotary = model.latent ? model.latent->rotary_size : 0;
  const std::int64_t queries = model.heads * (model.head_size + rotary);
  const std::int64_t keys = model.latent ? queries : model.key_value_heads * model.head_size;
  return {static_cast<double>(queries), static_cast<double>(keys),
          static_cast<double>(queries + 2 * keys)};
}

/// Numbers that are cast before 8-bit GEMMs: the inputs of F, and the gradients of outputs for I
/// and W.
struct CastNumbers {
  MovedNumbers forward;
  MovedNumbers backward;
};

CastNumbers cast_numbers(const Transformer& model, std::int64_t layer) {
  const auto hidden = static_cast<double>(model.hidden);
  const HeadWidths heads = widths_of(model);
  const double inner = inner_width(model, layer);
  const double copies = has_experts(model, layer)
                            ? static_cast<double>(model.experts->per_token + model.experts->shared)
                            : 1;
  return {{(1 + copies) * hidden, heads.queries + inner},
          {(1 + copies) * hidden, heads.all + (model.gated ? 2 : 1) * inner}};
}

/// Numbers moved by two norms (read and written), two residuals, and splitting and merging heads.
/// GPT style adds biases beside the GEMMs, and dropout with a one-byte mask in the residual's
/// kernel. Gated models add rotary positions and a fused kernel over three tensors.
MovedNumbers moved_forward(const Transformer& model, double inner) {
  const auto hidden = static_cast<double>(model.hidden);
  const HeadWidths heads = widths_of(model);
  const double around = (model.dropout ? 11 : 10) * hidden;
  if (model.gated)
    return {around, 2 * (heads.queries + heads.keys) + 2 * heads.queries + 3 * inner};
  return {around, 4 * heads.all + 2 * heads.queries + 4 * inner};
}

/// The gradient of a norm reads two tensors and writes one, that of a residual adds two, that of an
/// activation reads two and writes one, and that of a bias is a sum.
MovedNumbers moved_backward(const Transformer& model, double inner) {
  const auto hidden = static_cast<double>(model.hidden);
  const HeadWidths heads = widths_of(model);
  const double around = (model.dropout ? 17 : 12) * hidden;
  const double together = 2 * heads.all + 2 * heads.queries;
  if (model.gated) return {around, together + 2 * (heads.queries + heads.keys) + 5 * inner};
  return {around, together + heads.all + 4 * inner};
}

}  // namespace

Link find_group_link(const Gpu& gpu, std::int32_t ranks, std::int32_t stride) {
  if (std::int64_t{ranks} * stride <= gpu.per_node) return gpu.inside;
  const double members = std::max(1, gpu.per_node / stride);
  return {gpu.outside.latency, members == 1 ? gpu.outside.bytes_per_second
                                            : std::min(gpu.inside.bytes_per_second,
                                                       members * gpu.outside.bytes_per_second)};
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
  return one_node ? near.inside : near.outside;
}

double exposed_exchange_time(const ModelOnDevices& on, std::int64_t layer) {
  return has_experts(on.model, layer) ? LayerTimer(on).expert_collectives() : 0;
}

namespace {

/// Collectives that a layer's F, and again its I, waits for.
double exposed_waits(const ModelOnDevices& on, const LayerTimer& timer, std::int64_t layer) {
  const bool with_experts = has_experts(on.model, layer);
  const bool around_network =
      !with_experts || on.parallel.expert_split() > 1 || on.model.experts->shared > 0;
  return timer.tensor_collectives(around_network) + timer.context_collectives() +
         (with_experts ? timer.expert_collectives() : 0);
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
  const auto with_biases = [&](double output_bytes, double activation_bytes) {
    const std::int64_t inner = on.model.experts->feed_forward / on.parallel.expert_split();
    return permuted + timer.expert_biases(output_bytes, on.model.hidden) +
           timer.expert_biases(activation_bytes, inner);
  };
  return {with_biases(28, 16), with_biases(40, 20)};
}

/// The time that full recomputation leaves out. PyTorch's checkpoints stop where the last tensor
/// that the backward needs is there again (torch.utils.checkpoint, set_checkpoint_early_stop):
/// before the network's last GEMM, the collective behind it and the residual. Outputs of routed
/// experts are needed, to weigh them.
double not_recomputed_time(const ModelOnDevices& on, const LayerTimer& timer, std::int64_t layer) {
  const auto inner = static_cast<double>(on.model.feed_forward);
  if (!on.parallel.pytorch || has_experts(on.model, layer) || inner == 0) return 0;
  const auto hidden = static_cast<double>(on.model.hidden);
  const double scatter = (timer.tensor_collectives(true) - timer.tensor_collectives(false)) / 2;
  return timer.gemm(timer.tokens(), timer.per_tensor_rank(inner), hidden).forward + scatter +
         timer.elementwise({3 * hidden, 0});
}

/// The work that a layer recomputes in its backward.
double recompute_time(const ModelOnDevices& on, const LayerTimer& timer, const PhaseTimes& gemms,
                      std::int64_t layer, double forward) {
  if (on.parallel.recompute == Recompute::kNone) return 0;
  if (on.parallel.recompute == Recompute::kFull)
    return forward - not_recomputed_time(on, timer, layer);
  if (on.parallel.pytorch)
    return gemms.forward / 2 +
           timer.elementwise(moved_forward(on.model, inner_width(on.model, layer)));
  if (on.model.latent && on.parallel.flash_attention) return up_projection_times(on, timer).forward;
  return timer.core_forward() + timer.scores(score_bytes_forward(on.model));
}

}  // namespace

PhaseTimes apply_host_limit(const ModelOnDevices& on, PhaseTimes times, std::int64_t layers) {
  const CostAssumptions& assumed = on.assumptions;
  const double doublings = std::log2(static_cast<double>(on.parallel.tensor));
  const double layer = static_cast<double>(assumed.host_layer) +
                       doublings * static_cast<double>(assumed.host_tensor);
  const double pass = static_cast<double>(layers) * layer + static_cast<double>(assumed.host_pass);
  const double backward = (on.parallel.recompute == Recompute::kFull ? 2 : 1) * pass;
  times.forward = std::max(times.forward, pass);
  times.input_grad = std::max(times.input_grad, backward - times.weight_grad);
  return times;
}

PhaseTimes estimate_layer_times(const ModelOnDevices& on, std::int64_t layer) {
  const LayerTimer timer(on);
  const PhaseTimes gemms = gemm_times(on, timer, layer);
  const CastNumbers casts = cast_numbers(on.model, layer);
  const double waits = exposed_waits(on, timer, layer);
  const ExpertMoves moves = expert_moves(on, timer, layer);
  const double inner = inner_width(on.model, layer);
  PhaseTimes times;
  times.forward = gemms.forward + timer.core_forward() +
                  timer.scores(score_bytes_forward(on.model)) + timer.cast(casts.forward) +
                  timer.elementwise(moved_forward(on.model, inner)) + moves.forward +
                  timer.launches(1) + waits;
  times.input_grad = gemms.input_grad + timer.core_backward() +
                     timer.scores(score_bytes_backward(on.model)) + timer.cast(casts.backward) +
                     timer.elementwise(moved_backward(on.model, inner)) + moves.backward +
                     timer.launches(1) + waits + timer.regather_time();
  times.weight_grad = gemms.weight_grad + timer.launches(4 / on.assumptions.forward_kernels);
  times.input_grad += recompute_time(on, timer, gemms, layer, times.forward);
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
              timer.cast({hidden, heads.queries}) + moved(moved_forward(on.model, 0)) + launches,
          gemms.input_grad + timer.core_backward() + timer.scores(score_bytes_backward(on.model)) +
              timer.cast({hidden, heads.all}) + moved(moved_backward(on.model, 0)) + launches,
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
  const double softmax = timer.moved(4 * 4 * timer.tokens() * columns);
  return gemm + PhaseTimes{softmax + timer.launches(0.5), softmax / 2 + timer.launches(0.3),
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
  for (std::int64_t module = 0; module < on.model.predictions; ++module) {
    sum += estimate_layer_times(on, on.model.layers - 1);
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
