// How long the parts of a model take on a device: FLOPs, bytes, launches and collectives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/gpu.h"
#include "sim/model/parallelism.h"
#include "sim/model/transformer.h"

namespace bubblescope {

/// What is not in the devices' tables; each is an assumption that --explain prints.
struct CostAssumptions {
  /// Of the reachable rate, what products reach one after another, and a side n of theirs costs
  /// n / (n + half) of it. Both are fitted to the weight gradients of arXiv 2401.10241, table 9,
  /// which they meet within 2 %.
  double product_rate = 0.95;
  double half_rate_size = 50;
  double memory_rate = 0.9;  ///< of the stated memory bandwidth, by products and optimizers
  /// The same by norms, biases, dropout, activation functions: fitted to F and I of the same table
  /// 9 and of arXiv 2205.05198, table 4.
  double elementwise_rate = 0.67;
  Nanos launch = 4'000;         ///< of a kernel, until all SMs work, and at its end until none does
  double forward_kernels = 18;  ///< of a layer; its input gradient has as many, W four
  double flash_backward =
      2.5;  ///< attention's core, backward over forward; 2 where scores are kept
  /// Flash attention beside plain products (arXiv 2307.08691 and 2407.08608, head size 128).
  double core_rate = 0.75;
  bool causal = true;            ///< half of the scores are never computed
  double tensor_exposed = 1;     ///< of the tensor ranks' collectives, the part that is waited for
  double context_exposed = 0.5;  ///< of the context ranks' key and value exchange
  double expert_exposed = 1;     ///< of the experts' all-to-all
  /// Moved per weight and micro-batch where a kernel of its own adds gradients up, which W's
  /// products do otherwise: 10 to 12 where gradients of 16 bits are added to 32 (Megatron-LM
  /// without gradient accumulation fusion).
  double accumulation_bytes = 0;
  /// Of a message between pipeline ranks, what holds up the op that sends it; 1 where a runtime
  /// waits for its sends, as Megatron-LM without --overlap-p2p-communication.
  double message_exposed = 0;
  /// Of the device's SMs, what a collective holds while it runs beside compute: 20 of an H800's 132
  /// (arXiv 2412.19437, section 3.5.1). Compute is so much slower meanwhile.
  double collective_sms = 20.0 / 132;
  /// An overlapped pair's exchanges run beside each other's compute (--overlap fused).
  bool pairs_hide_exchange = false;
  double slowdown = 1;  ///< of all compute: a calibration against a measured step
};

/// What one micro-batch costs a rank.
struct PhaseTimes {
  double forward = 0;  ///< in nanoseconds
  double input_grad = 0;
  double weight_grad = 0;

  PhaseTimes& operator+=(const PhaseTimes& other) {
    forward += other.forward;
    input_grad += other.input_grad;
    weight_grad += other.weight_grad;
    return *this;
  }
};

/// A model on devices; all verbs below read it.
struct ModelOnDevices {
  Transformer model;
  Gpu gpu;
  Parallelism parallel;
  CostAssumptions assumptions = {};
  std::string name;                       ///< "llama3-70b on h100"
  std::string device = {};                ///< "h100", a preset's name, or a file
  std::vector<std::string> sources = {};  ///< where the model's and the device's numbers stand
  Bytes kept_free = 0;                    ///< of a device's memory, for what is not counted

  Bytes usable_memory() const { return gpu.memory - kept_free; }
};

/// The time for which a layer's F, and its I, waits for the experts' all-to-all.
double exchange_waits(const ModelOnDevices& on, std::int64_t layer);

/// Layer 0..layers-1. Every weight costs 2 FLOPs per token in F, in I and in W; the core of
/// attention has no weights, its backward is all in I; so is what is computed again.
PhaseTimes layer_times(const ModelOnDevices& on, std::int64_t layer);
PhaseTimes embedding_times(const ModelOnDevices& on);
PhaseTimes head_times(const ModelOnDevices& on);
/// Of all multi-token prediction modules.
PhaseTimes prediction_times(const ModelOnDevices& on);
/// What adding up the gradients of so many weights takes beside W's products, in nanoseconds.
double accumulation_time(const ModelOnDevices& on, double parameters);

/// FLOPs of one sample's forward and backward through the whole model, nothing computed twice: what
/// MFU counts.
double model_flops_per_sample(const Transformer& model, std::int64_t sequence, bool causal);

/// How well devices are used that take so long for a step.
struct ModelRates {
  double devices = 1;
  double tokens_per_second = 0;  ///< of all devices
  double mfu = 0;                ///< model FLOPs utilisation, a fraction
};
ModelRates model_rates(const ModelOnDevices& on, const Shape& shape, Nanos step);

/// What a collective's ring gets per rank, in a group that starts at a device and steps by `stride`
/// devices. Where the group leaves its node, the NICs of all its members in a node carry it
/// together, as NCCL's rings do: one channel leaves the node through each.
Link group_link(const Gpu& gpu, std::int32_t ranks, std::int32_t stride);
/// Each rank keeps 1/n of its bytes and sends the rest, pair by pair: to its node beside the
/// others.
Nanos exchange_time(const Gpu& gpu, double bytes, std::int32_t ranks, std::int32_t stride);
/// The link between two ranks of a pipeline, whose devices stand as in model_step().
const Link& rank_link(const ModelOnDevices& on, std::int32_t from, std::int32_t to);

}  // namespace bubblescope
