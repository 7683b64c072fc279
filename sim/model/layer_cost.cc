// A roofline model: a GEMM takes the longer of the times for its FLOPs and for its bytes.
#include "sim/model/layer_cost.h"

#include <algorithm>

namespace bubblescope::inline sim {

namespace {

bool has_experts(const Transformer& model, std::int64_t layer) {
  return model.experts && layer >= model.experts->dense_layers;
}

/// 16-bit numbers that the kernels between a layer's GEMMs read and write per token: those around
/// the norms, which sequence parallelism splits, and those between split GEMMs.
struct MovedNumbers {
  double around = 0;
  double split = 0;
};

/// Mask and softmax read 2 bytes and write 2; dropout does the same and writes a mask.
double score_bytes_forward(const Transformer& model) { return model.dropout ? 9 : 4; }
/// The gradient of softmax reads two tensors and writes one; dropout as in the forward.
double score_bytes_backward(const Transformer& model) { return model.dropout ? 11 : 6; }

/// Times of one layer's parts.
class LayerTimer {
 public:
  explicit LayerTimer(const ModelOnDevices& on) : on_(on) {}

  double tokens() const { return static_cast<double>(on_.parallel.tokens()); }
  double per_tensor_rank(double amount) const { return amount / on_.parallel.tensor; }
  double per_norm_rank(double amount) const { return amount / on_.parallel.norm_split(); }

  /// A GEMM of `rows` tokens with a matrix. Its F, I and W sum over different sides but have the
  /// same sides, so they take the same time.
  double gemm(double rows, double inputs, double outputs) const {
    double rate = on_.gpu.reachable_flops * on_.assumptions.gemm_efficiency;
    for (const double side : {rows, inputs, outputs})
      rate *= side / (side + on_.assumptions.half_efficiency_size);
    const double bytes = 2 * (rows * inputs + inputs * outputs + rows * outputs);
    return std::max(2 * rows * inputs * outputs / rate * 1e9, memory(bytes)) *
           on_.assumptions.slowdown;
  }

  double memory(double bytes) const {
    return bytes / (on_.gpu.memory_bytes_per_second * on_.assumptions.memory_efficiency) * 1e9;
  }

  /// The time of kernels that are limited by memory bandwidth.
  double moved(double bytes) const {
    return memory(bytes) * on_.assumptions.memory_efficiency /
           on_.assumptions.elementwise_efficiency;
  }

  /// The core of attention in F: scores and weighted values, 2 GEMMs of s^2 a d each. If scores are
  /// saved, all of them are computed, written and read (2 bytes each), and then masked.
  double core() const {
    const Transformer& model = on_.model;
    const double rotary = model.latent ? static_cast<double>(model.latent->rotary_size) : 0;
    const double width =
        static_cast<double>(model.heads) * (2 * static_cast<double>(model.head_size) + rotary);
    const double share = on_.assumptions.causal && on_.parallel.flash_attention ? 0.5 : 1;
    const double sequence = static_cast<double>(on_.parallel.sequence);
    const double flops = share * 2 * tokens() * sequence * per_tensor_rank(width);
    const double rate = on_.gpu.reachable_flops * on_.assumptions.core_efficiency;
    return std::max(flops / rate * 1e9 * on_.assumptions.slowdown, scores(4));
  }

  /// The time of the kernels that pass over scores, by their bytes per score; 0 for flash
  /// attention.
  double scores(double bytes) const {
    if (on_.parallel.flash_attention) return 0;
    const auto heads = static_cast<double>(on_.model.heads);
    return moved(tokens() * static_cast<double>(on_.parallel.sequence) * per_tensor_rank(heads) *
                 bytes);
  }

  double elementwise(const MovedNumbers& numbers) const {
    return moved(2 * tokens() * (per_norm_rank(numbers.around) + per_tensor_rank(numbers.split)));
  }

  double launches(double share) const {
    return share * on_.assumptions.forward_kernels * static_cast<double>(on_.assumptions.launch);
  }

  /// Two collectives, around attention and around the network, in F and again in I. There is only
  /// one if every expert is whole on its rank, which then processes its own part of the sequence.
  double tensor_collectives(bool around_network) const {
    const double bytes = 2 * tokens() * static_cast<double>(on_.model.hidden);
    const Link link = find_group_link(on_.gpu, on_.parallel.tensor, 1);
    return exposed_time(
        (around_network ? 2 : 1) * estimate_all_reduce_time(bytes, on_.parallel.tensor, link),
        on_.assumptions.tensor_exposed);
  }

  double expert_collectives() const {
    return exposed_time(static_cast<Nanos>(expert_exchange()), on_.assumptions.expert_exposed);
  }

  /// With sequence parallelism, inputs are saved in parts and gathered again in I, beside a GEMM.
  double regather_time() const {
    if (!on_.parallel.sequence_parallel) return 0;
    const double bytes = 2 * tokens() * static_cast<double>(on_.model.hidden);
    const Link link = find_group_link(on_.gpu, on_.parallel.tensor, 1);
    return exposed_time(2 * estimate_all_gather_time(bytes, on_.parallel.tensor, link), 0);
  }

  /// All keys and values of the sequence are gathered in F; their gradients are scattered in I.
  double context_collectives() const {
    const Parallelism& parallel = on_.parallel;
    const double width = 2 * static_cast<double>(on_.model.key_value_heads * on_.model.head_size);
    const double bytes = 2 * per_tensor_rank(width) * tokens() * parallel.context;
    const Link link = find_group_link(on_.gpu, parallel.context, parallel.tensor);
    return exposed_time(estimate_all_gather_time(bytes, parallel.context, link),
                        on_.assumptions.context_exposed);
  }

  /// The time to send tokens to their experts and back, before any of it is hidden.
  double expert_exchange() const {
    const Parallelism& parallel = on_.parallel;
    const double bytes = 2 * per_tensor_rank(tokens()) * static_cast<double>(on_.model.hidden) *
                         static_cast<double>(on_.model.experts->per_token);
    if (parallel.expert <= 1) return 0;
    return static_cast<double>(
        2 * estimate_exchange_time(on_.gpu, bytes, parallel.expert, parallel.expert_split()));
  }

 private:
  /// The time that a collective adds to a layer: its exposed part, and the slowdown by its hidden
  /// part.
  double exposed_time(Nanos collective, double exposed) const {
    return static_cast<double>(collective) *
           (exposed + (1 - exposed) * on_.assumptions.collective_sms);
  }

  const ModelOnDevices& on_;
};

/// The GEMMs around the core of attention in F.
double attention_gemm_time(const ModelOnDevices& on, const LayerTimer& timer) {
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
  const double queries = split(model.heads * (model.head_size + latent.rotary_size));
  const auto query_rank = static_cast<double>(latent.query_rank);
  const auto key_value_rank = static_cast<double>(latent.key_value_rank);
  const double up = latent.query_rank > 0 ? timer.gemm(rows, hidden, query_rank) +
                                                timer.gemm(rows, query_rank, queries)
                                          : timer.gemm(rows, hidden, queries);
  return up + timer.gemm(rows, hidden, key_value_rank + static_cast<double>(latent.rotary_size)) +
         timer.gemm(rows, key_value_rank,
                    split(model.heads * (model.head_size + latent.value_size))) +
         timer.gemm(rows, split(model.heads * latent.value_size), hidden);
}

/// The GEMMs of a feed-forward network with an inner width, in F.
double network_gemm_time(const ModelOnDevices& on, const LayerTimer& timer, double rows,
                         double width) {
  if (width == 0) return 0;
  const auto hidden = static_cast<double>(on.model.hidden);
  return timer.gemm(rows, hidden, (on.model.gated ? 2 : 1) * width) +
         timer.gemm(rows, width, hidden);
}

/// All GEMMs of a layer in F.
double gemm_time(const ModelOnDevices& on, const LayerTimer& timer, std::int64_t layer) {
  const double attention = attention_gemm_time(on, timer);
  const auto split = [&](std::int64_t width) {
    return timer.per_tensor_rank(static_cast<double>(width));
  };
  if (!has_experts(on.model, layer))
    return attention + network_gemm_time(on, timer, timer.tokens(), split(on.model.feed_forward));
  const Experts& experts = *on.model.experts;
  const double local = static_cast<double>(experts.count) / on.parallel.expert;
  const double parts = on.parallel.expert_split();
  // Each rank of a tensor group sends a part of the group's tokens to the experts.
  const double rows = timer.per_tensor_rank(timer.tokens() * parts) *
                      static_cast<double>(experts.per_token) / local;
  return attention +
         network_gemm_time(on, timer, timer.tokens(),
                           split(experts.shared * experts.feed_forward)) +
         timer.gemm(timer.tokens(), static_cast<double>(on.model.hidden),
                    static_cast<double>(experts.count)) +
         local *
             network_gemm_time(on, timer, rows, static_cast<double>(experts.feed_forward) / parts);
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

/// Tokens are permuted into the order of their experts and back: each copy is read and written
/// twice.
double permuted_numbers(const Transformer& model, std::int64_t layer) {
  if (!has_experts(model, layer)) return 0;
  return 4 * static_cast<double>(model.experts->per_token * model.hidden);
}

/// Numbers moved by two norms (read and written), two residuals, and splitting and merging heads.
/// GPT style adds biases beside the GEMMs, and dropout with a one-byte mask in the residual's
/// kernel. Gated models add rotary positions and a fused kernel over three tensors.
MovedNumbers moved_forward(const Transformer& model, std::int64_t layer) {
  const auto hidden = static_cast<double>(model.hidden);
  const HeadWidths heads = widths_of(model);
  const double inner = inner_width(model, layer);
  const double around = (model.dropout ? 11 : 10) * hidden + permuted_numbers(model, layer);
  if (model.gated)
    return {around, 2 * (heads.queries + heads.keys) + 2 * heads.queries + 3 * inner};
  return {around, 4 * heads.all + 2 * heads.queries + 4 * inner};
}

/// The gradient of a norm reads two tensors and writes one, that of a residual adds two, that of an
/// activation reads two and writes one, and that of a bias is a sum.
MovedNumbers moved_backward(const Transformer& model, std::int64_t layer) {
  const auto hidden = static_cast<double>(model.hidden);
  const HeadWidths heads = widths_of(model);
  const double inner = inner_width(model, layer);
  const double around = (model.dropout ? 17 : 12) * hidden + permuted_numbers(model, layer);
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

Nanos estimate_exchange_time(const Gpu& gpu, double bytes, std::int32_t ranks,
                             std::int32_t stride) {
  const std::int32_t members = std::clamp(gpu.per_node / stride, 1, ranks);
  if (members == ranks) return estimate_all_to_all_time(bytes, ranks, gpu.inside);
  const double inside = bytes * (members - 1) / ranks;
  const double outside = bytes * (ranks - members) / ranks;
  return std::max(members > 1 ? gpu.inside.time(inside) : 0, gpu.outside.time(outside));
}

const Link& find_rank_link(const ModelOnDevices& on, std::int32_t from, std::int32_t to) {
  const std::int64_t stride =
      std::int64_t{on.parallel.tensor} * on.parallel.context * on.parallel.data;
  const bool one_node = from * stride / on.gpu.per_node == to * stride / on.gpu.per_node;
  return one_node ? on.gpu.inside : on.gpu.outside;
}

double exposed_exchange_time(const ModelOnDevices& on, std::int64_t layer) {
  return has_experts(on.model, layer) ? LayerTimer(on).expert_collectives() : 0;
}

PhaseTimes estimate_layer_times(const ModelOnDevices& on, std::int64_t layer) {
  const LayerTimer timer(on);
  const double gemms = gemm_time(on, timer, layer);
  const double core = timer.core();
  const double scores = timer.scores(score_bytes_forward(on.model));
  const bool with_experts = has_experts(on.model, layer);
  const bool around_network =
      !with_experts || on.parallel.expert_split() > 1 || on.model.experts->shared > 0;
  const double exposed_waits = timer.tensor_collectives(around_network) +
                               timer.context_collectives() +
                               (with_experts ? timer.expert_collectives() : 0);
  PhaseTimes times;
  times.forward = gemms + core + scores + timer.elementwise(moved_forward(on.model, layer)) +
                  timer.launches(1) + exposed_waits;
  const double core_backward = on.parallel.flash_attention ? on.assumptions.flash_backward : 2;
  times.input_grad = gemms + core_backward * core + timer.scores(score_bytes_backward(on.model)) +
                     timer.elementwise(moved_backward(on.model, layer)) + timer.launches(1) +
                     exposed_waits + timer.regather_time();
  times.weight_grad = gemms + timer.launches(4 / on.assumptions.forward_kernels);
  if (on.parallel.recompute == Recompute::kFull) times.input_grad += times.forward;
  if (on.parallel.recompute == Recompute::kSelective) times.input_grad += core + scores;
  return times;
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
  const double gemm = timer.gemm(timer.tokens(), static_cast<double>(on.model.hidden), columns);
  const double softmax = timer.moved(4 * 4 * timer.tokens() * columns);
  return {gemm + softmax + timer.launches(0.5), gemm + softmax / 2 + timer.launches(0.3),
          gemm + timer.launches(0.1)};
}

double estimate_accumulation_time(const ModelOnDevices& on, double parameters) {
  return LayerTimer(on).memory(on.assumptions.accumulation_bytes * parameters);
}

PhaseTimes estimate_prediction_times(const ModelOnDevices& on) {
  PhaseTimes sum;
  const LayerTimer timer(on);
  const auto hidden = static_cast<double>(on.model.hidden);
  const double projection = timer.gemm(timer.tokens(), 2 * hidden, timer.per_tensor_rank(hidden));
  for (std::int64_t module = 0; module < on.model.predictions; ++module) {
    sum += estimate_layer_times(on, on.model.layers - 1);
    sum += {projection, projection, projection};
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
  const double core =
      static_cast<double>(model.layers + more) * (causal ? 1 : 2) * length * length * width;
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
  ModelRates rates;
  rates.devices =
      static_cast<double>(parallel.tensor) * parallel.context * shape.ranks * parallel.data;
  rates.tokens_per_second = tokens / seconds;
  rates.mfu = flops / (seconds * rates.devices * on.gpu.peak_flops);
  return rates;
}

}  // namespace bubblescope::inline sim
