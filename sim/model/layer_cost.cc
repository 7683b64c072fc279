// Roofs: a product takes as long as its FLOPs or its bytes, whichever is longer.
#include "sim/model/layer_cost.h"

#include <algorithm>

namespace bubblescope {

namespace {

/// Times of one layer's parts.
class LayerClock {
 public:
  explicit LayerClock(const ModelOnDevices& on) : on_(on) {}

  double tokens() const { return static_cast<double>(on_.parallel.tokens()); }
  double per_tensor_rank(double amount) const { return amount / on_.parallel.tensor; }
  double per_norm_rank(double amount) const { return amount / on_.parallel.norm_split(); }

  /// Products of `rows` tokens with weights whose split side has `columns`.
  double product(double weights, double rows, double columns) const {
    const double half = on_.assumptions.half_rate_size;
    const double rate = on_.gpu.reachable_flops * rows / (rows + half) * columns / (columns + half);
    return std::max(2 * rows * weights / rate * 1e9, memory(2 * weights)) *
           on_.assumptions.slowdown;
  }

  double memory(double bytes) const {
    return bytes / (on_.gpu.memory_bytes_per_second * on_.assumptions.memory_rate) * 1e9;
  }

  /// Attention's core in F: scores and weighted values, 2 products of s^2 a d each.
  double core() const {
    const Transformer& model = on_.model;
    const double rotary = model.latent ? static_cast<double>(model.latent->rotary_size) : 0;
    const double width =
        static_cast<double>(model.heads) * (2 * static_cast<double>(model.head_size) + rotary);
    const double share = on_.assumptions.causal ? 0.5 : 1;
    const double sequence = static_cast<double>(on_.parallel.sequence);
    const double flops = share * 2 * tokens() * sequence * per_tensor_rank(width);
    const double rate = on_.gpu.reachable_flops * on_.assumptions.core_rate;
    double time = flops / rate * 1e9 * on_.assumptions.slowdown;
    if (!on_.parallel.flash_attention)
      time += memory(tokens() * sequence * per_tensor_rank(static_cast<double>(model.heads)) * 14);
    return time;
  }

  /// Norms, residuals, activation functions: read and written once each, in F.
  double elementwise(double inner) const {
    const Transformer& model = on_.model;
    const double hidden = static_cast<double>(model.hidden);
    const double around = (model.dropout ? 15 : 10) * hidden;  // numbers per token
    const double split = (model.gated ? 3 : 2) * inner;
    return memory(2 * tokens() * (per_norm_rank(around) + per_tensor_rank(split)));
  }

  double launches(double share) const {
    return share * on_.assumptions.forward_kernels * static_cast<double>(on_.assumptions.launch);
  }

  /// Two collectives around attention and network, in F and again in I.
  double tensor_collectives() const {
    const double bytes = 2 * tokens() * static_cast<double>(on_.model.hidden);
    const Link& link = group_link(on_.gpu, on_.parallel.tensor, 1);
    return on_.assumptions.tensor_exposed *
           static_cast<double>(2 * all_reduce_time(bytes, on_.parallel.tensor, link));
  }

  /// All keys and values of the sequence, gathered in F; their gradients are scattered in I.
  double context_collectives() const {
    const Parallelism& parallel = on_.parallel;
    const double width = 2 * static_cast<double>(on_.model.key_value_heads * on_.model.head_size);
    const double bytes = 2 * per_tensor_rank(width) * tokens() * parallel.context;
    const Link& link = group_link(on_.gpu, parallel.context, parallel.tensor);
    return on_.assumptions.context_exposed *
           static_cast<double>(all_gather_time(bytes, parallel.context, link));
  }

  /// Tokens to their experts and back.
  double expert_collectives() const {
    const Parallelism& parallel = on_.parallel;
    const double bytes = 2 * per_tensor_rank(tokens()) * static_cast<double>(on_.model.hidden) *
                         static_cast<double>(on_.model.experts->per_token);
    const Link& link = group_link(on_.gpu, parallel.expert, parallel.tensor);
    return on_.assumptions.expert_exposed *
           static_cast<double>(2 * all_to_all_time(bytes, parallel.expert, link));
  }

 private:
  const ModelOnDevices& on_;
};

/// All products of a layer in F.
double products_of(const ModelOnDevices& on, const LayerClock& clock, std::int64_t layer) {
  const LayerParameters parameters = parameters_of_layer(on.model, layer);
  const double hidden = static_cast<double>(on.model.hidden);
  const auto dense = [&](std::int64_t weights) {
    return clock.product(clock.per_tensor_rank(static_cast<double>(weights)), clock.tokens(),
                         clock.per_tensor_rank(hidden));
  };
  double time = dense(parameters.attention) + dense(parameters.network);
  if (parameters.experts == 0) return time;
  const Experts& experts = *on.model.experts;
  const double local = static_cast<double>(experts.count) / on.parallel.expert;
  const double rows = clock.tokens() * static_cast<double>(experts.per_token) / local;
  const double inner = static_cast<double>(experts.feed_forward);
  const std::int64_t parameters_of_one = parameters.experts / experts.count;
  const auto one = static_cast<double>(parameters_of_one);
  return time +
         local * clock.product(clock.per_tensor_rank(one), rows, clock.per_tensor_rank(inner));
}

double inner_width(const Transformer& model, std::int64_t layer) {
  if (!model.experts || layer < model.experts->dense_layers)
    return static_cast<double>(model.feed_forward);
  return static_cast<double>((model.experts->per_token + model.experts->shared) *
                             model.experts->feed_forward);
}

}  // namespace

const Link& group_link(const Gpu& gpu, std::int32_t ranks, std::int32_t stride) {
  return std::int64_t{ranks} * stride <= gpu.per_node ? gpu.inside : gpu.outside;
}

PhaseTimes layer_times(const ModelOnDevices& on, std::int64_t layer) {
  const LayerClock clock(on);
  const bool has_experts = on.model.experts && layer >= on.model.experts->dense_layers;
  const double products = products_of(on, clock, layer);
  const double core = clock.core();
  const double rest = clock.elementwise(inner_width(on.model, layer));
  const double waits = clock.tensor_collectives() + clock.context_collectives() +
                       (has_experts ? clock.expert_collectives() : 0);
  PhaseTimes times;
  times.forward = products + core + rest + clock.launches(1) + waits;
  const double core_backward = on.parallel.flash_attention ? on.assumptions.flash_backward : 2;
  times.input_grad = products + core_backward * core + 2 * rest + clock.launches(1) + waits;
  times.weight_grad = products + clock.launches(4 / on.assumptions.forward_kernels);
  if (on.parallel.recompute == Recompute::kFull) times.input_grad += times.forward;
  if (on.parallel.recompute == Recompute::kSelective) times.input_grad += core;
  return times;
}

PhaseTimes embedding_times(const ModelOnDevices& on) {
  const LayerClock clock(on);
  const double numbers = clock.tokens() * static_cast<double>(on.model.hidden);
  const double lookup = clock.memory(4 * clock.per_norm_rank(numbers)) + clock.launches(0.2);
  return {lookup, 0, lookup};
}

PhaseTimes head_times(const ModelOnDevices& on) {
  const LayerClock clock(on);
  const double columns = clock.per_tensor_rank(static_cast<double>(on.model.vocabulary));
  const double product =
      clock.product(static_cast<double>(on.model.hidden) * columns, clock.tokens(), columns);
  const double softmax = clock.memory(4 * 4 * clock.tokens() * columns);
  return {product + softmax + clock.launches(0.5), product + softmax / 2 + clock.launches(0.3),
          product + clock.launches(0.1)};
}

double model_flops_per_sample(const Transformer& model, std::int64_t sequence, bool causal) {
  const double length = static_cast<double>(sequence);
  const double rotary = model.latent ? static_cast<double>(model.latent->rotary_size) : 0;
  const double width =
      static_cast<double>(model.heads) * (2 * static_cast<double>(model.head_size) + rotary);
  double per_token = static_cast<double>(head_parameters(model));
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    per_token += static_cast<double>(parameters_of_layer(model, layer).active());
  const double core =
      static_cast<double>(model.layers) * (causal ? 1 : 2) * length * length * width;
  return 3 * (2 * length * per_token + core);
}

}  // namespace bubblescope
