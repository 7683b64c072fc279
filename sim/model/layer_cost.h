// The cost of a model's layers on a device: FLOPs, bytes, kernel launches and collectives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/model/collectives.h"
#include "sim/model/cost_assumptions.h"
#include "sim/model/pair_order.h"
#include "sim/model/parallelism.h"
#include "sim/model/transformer.h"

namespace bubblescope::inline sim {

/// The time of one micro-batch on a rank.
struct PhaseTimes {
  double forward = 0;  ///< in nanoseconds
  double input_grad = 0;
  double weight_grad = 0;
  double total() const { return forward + input_grad + weight_grad; }
  PhaseTimes& operator+=(const PhaseTimes& other) {
    forward += other.forward;
    input_grad += other.input_grad;
    weight_grad += other.weight_grad;
    return *this;
  }
  friend PhaseTimes operator+(PhaseTimes left, const PhaseTimes& right) { return left += right; }
};

/// Splits a model's ops into parts on lanes (model_parts.h).
struct PartsOfModel {
  /// How the two ops of a pair interleave their parts; nullopt: one runs after the other.
  std::optional<PairOrder> pair_order = {};
};

/// A model on devices: the input of all functions below.
struct ModelOnDevices {
  Transformer model;
  Gpu gpu;
  Parallelism parallel;
  CostAssumptions assumptions = {};
  std::string runtime = "megatron";  ///< that set the assumptions
  MatrixType matrices = MatrixType::kBf16;
  std::string name;                       ///< "llama3-70b on h100"
  std::string device = {};                ///< "h100", a preset's name, or a file
  std::vector<std::string> sources = {};  ///< where the model's and the device's numbers come from
  Bytes reserved_memory = 0;              ///< device memory reserved for what is not counted
  /// [microbatch]: the tokens of its sequences; empty: all have parallel.sequence.
  std::vector<std::int64_t> sequence_lengths = {};
  /// How the layers of every stage were chosen; nullopt: they were given, or none were tried.
  std::optional<SplitTrials> trials = {};
  /// Choices of the user that no published run had: "an order that ranks choose during the step".
  std::vector<std::string> replaced = {};
  std::vector<ReplacedAssumption> replaced_assumptions = {};  ///< those that matter join `replaced`
  std::string unpublished_schedule = {};   ///< one that no published run had; empty: one had it
  std::optional<PartsOfModel> parts = {};  ///< nullopt: ops are whole
  bool trains = true;                      ///< otherwise the schedule has forwards alone
  /// Whether memory over time has what is being sent, and what UNSHARDs gather, so that no buffers
  /// are counted for them.
  bool counts_sends = false;
  bool counts_gathered = false;
  /// [rank] of a pipeline: its device, where ranks have different ones; empty: all have `gpu`.
  std::vector<Gpu> rank_gpus = {};

  const Gpu& gpu_of(std::int32_t rank) const {
    const auto at = static_cast<std::size_t>(rank);
    return at < rank_gpus.size() ? rank_gpus[at] : gpu;
  }
  Bytes usable_memory(std::int32_t rank) const { return gpu_of(rank).memory - reserved_memory; }
  std::vector<Bytes> usable_memories(std::int32_t ranks) const;  ///< [rank]
};

/// The time that a layer's F, and again its I, waits for the experts' all-to-all.
double exposed_exchange_time(const ModelOnDevices& on, std::int64_t layer);

/// How many layers a stage has, and how many of them have experts; fractions are of mean layers.
struct LaunchedLayers {
  double all = 0;
  double experts = 0;
  double covered = 1;  ///< the part of them that full recomputation covers
};

/// The time in which the host launches F, and the whole backward as `input_grad`.
PhaseTimes estimate_host_times(const ModelOnDevices& on, const LaunchedLayers& layers);
/// Adds to F or I what they exceed the device's times by; with launch_blocking all of them.
PhaseTimes apply_host_limit(const ModelOnDevices& on, PhaseTimes times,
                            const LaunchedLayers& layers);
/// The times of layer 0..layers-1, by the device alone. Every weight costs 2 FLOPs per token in F,
/// in I and in W. Attention's core has no weights; its backward, and recomputation, are all in I.
PhaseTimes estimate_layer_times(const ModelOnDevices& on, std::int64_t layer);
/// The times of its attention, with a half of the norms and launches, without recomputation.
PhaseTimes estimate_attention_times(const ModelOnDevices& on);
PhaseTimes estimate_embedding_times(const ModelOnDevices& on);
PhaseTimes estimate_head_times(const ModelOnDevices& on);
PhaseTimes estimate_prediction_times(const ModelOnDevices& on);  ///< all modules
/// Returns the time to accumulate `parameters` gradients outside W's GEMMs, in nanoseconds.
double estimate_accumulation_time(const ModelOnDevices& on, double parameters);

/// Returns the FLOPs of one sample's forward and backward without recomputation: the basis of MFU.
double compute_model_flops_per_sample(const Transformer& model, std::int64_t sequence, bool causal);

/// The efficiency of devices for a given step time.
struct ModelRates {
  double devices = 1;
  double tokens_per_second = 0;  ///< of all devices
  double mfu = 0;                ///< model FLOPs utilization, a fraction
};
ModelRates compute_model_rates(const ModelOnDevices& on, const Shape& shape, Nanos step);

/// The bandwidth per rank of a collective's ring, in a group that starts at a device and steps by
/// `stride` devices. If the group spans nodes, the NICs of all its members in a node carry it
/// together, as in NCCL's rings. In a mesh, rings pass over all links.
GroupLink find_group_link(const Gpu& gpu, std::int32_t ranks, std::int32_t stride);
/// The link between two ranks of a pipeline; devices are numbered as in model_step(). Devices of
/// different kinds are in different nodes, and the slower end counts.
Link find_rank_link(const ModelOnDevices& on, std::int32_t from, std::int32_t to);

}  // namespace bubblescope::inline sim
