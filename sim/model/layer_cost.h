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
  /// which they meet within 4 %.
  double product_rate = 0.93;
  double half_rate_size = 50;
  double memory_rate = 0.9;     ///< of the stated memory bandwidth
  Nanos launch = 2'000;         ///< between two kernels of a stream
  double forward_kernels = 14;  ///< of a layer; its input gradient has as many, W four
  double score_bytes = 14;      ///< per score of attention that is stored, in F and again in I
  double flash_backward =
      2.5;  ///< attention's core, backward over forward; 2 where scores are kept
  /// Flash attention beside plain products (arXiv 2307.08691 and 2407.08608, head size 128).
  double core_rate = 0.75;
  bool causal = true;            ///< half of the scores are never computed
  double tensor_exposed = 1;     ///< of the tensor ranks' collectives, the part that is waited for
  double context_exposed = 0.5;  ///< of the context ranks' key and value exchange
  double expert_exposed = 1;     ///< of the experts' all-to-all
  /// Of the device's SMs, what a collective holds while it runs beside compute: 20 of an H800's 132
  /// (arXiv 2412.19437, section 3.5.1). Compute is so much slower meanwhile.
  double collective_sms = 20.0 / 132;
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
  std::vector<std::string> sources = {};  ///< where the model's and the device's numbers stand
};

/// Layer 0..layers-1. Every weight costs 2 FLOPs per token in F, in I and in W; the core of
/// attention has no weights, its backward is all in I; so is what is computed again.
PhaseTimes layer_times(const ModelOnDevices& on, std::int64_t layer);
PhaseTimes embedding_times(const ModelOnDevices& on);
PhaseTimes head_times(const ModelOnDevices& on);
/// Of all multi-token prediction modules.
PhaseTimes prediction_times(const ModelOnDevices& on);

/// FLOPs of one sample's forward and backward through the whole model, nothing computed twice: what
/// MFU counts.
double model_flops_per_sample(const Transformer& model, std::int64_t sequence, bool causal);

/// The link between ranks of a group that starts at a device and steps by `stride` devices.
const Link& group_link(const Gpu& gpu, std::int32_t ranks, std::int32_t stride);

}  // namespace bubblescope
