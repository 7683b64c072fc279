// The times of one layer's kernels and collectives on a device.
//
// A roofline: a GEMM takes the longer of the times for its FLOPs and for its bytes. Its rate is
// what the device sustains, less for short sides; attention's rate depends on how many blocks of
// queries there are for every SM.
#pragma once

#include <cstdint>

#include "sim/model/layer_cost.h"

namespace bubblescope::inline sim {

/// 16-bit numbers that the kernels between a layer's GEMMs read and write per token: those around
/// the norms, which sequence parallelism splits, and those between split GEMMs.
struct MovedNumbers {
  double around = 0;
  double split = 0;
};

/// Bytes per score of mask and softmax, with dropout where the model has it.
double score_bytes_forward(const Transformer& model);
double score_bytes_backward(const Transformer& model);

/// Times of one layer's parts, in nanoseconds. Refers to the ModelOnDevices.
class LayerTimer {
 public:
  explicit LayerTimer(const ModelOnDevices& on) : on_(on) {}

  double tokens() const { return static_cast<double>(on_.parallel.tokens()); }
  double per_tensor_rank(double amount) const { return amount / on_.parallel.tensor; }
  double per_norm_rank(double amount) const { return amount / on_.parallel.norm_split(); }

  /// A GEMM of `rows` tokens with a matrix. Its F, I and W sum over different sides but have the
  /// same sides, so they take the same time, unless the device has measured ones.
  PhaseTimes gemm(double rows, double inputs, double outputs) const;
  /// The same in 16 bits, whatever the other GEMMs compute in.
  PhaseTimes gemm16(double rows, double inputs, double outputs) const;
  /// Returns the time of so many experts' GEMMs of this shape each. W also reads and writes every
  /// gradient.
  double grouped_gemm(double experts, const GemmShape& shape) const;
  /// Whether W's GEMMs add their output to a gradient of 32 bits.
  bool adds_to_32_bits() const;
  double memory(double bytes) const;
  /// Returns the time of kernels that move so many bytes and are limited by memory bandwidth.
  double moved(double bytes) const;

  /// The core of attention: scores and weighted values, 2 GEMMs of s^2 a d each in F. If scores are
  /// saved, all of them are computed, written and read (2 bytes each), and then masked.
  double core_forward() const;
  double core_backward() const;
  /// The time of the kernels that pass over scores, by their bytes per score; 0 for flash
  /// attention.
  double scores(double bytes) const;

  double elementwise(const MovedNumbers& numbers) const;
  /// PyTorch's own kernels in place of fused ones; 0 for runtimes that fuse them.
  double eager(const MovedNumbers& numbers) const;
  /// Returns the time of the kernels that bring tokens into the order of their experts and back, in
  /// F or in I.
  double permutation() const;
  /// Returns the time of the other kernels of routing, which move so many bytes per number of a
  /// token, once for each of its experts.
  double routing(double bytes) const;
  /// Returns the time of unfused kernels around biased experts (gpt-oss), likewise for tensors of
  /// this width; 0 for other models.
  double expert_biases(double bytes, std::int64_t width) const;
  /// The casts of these numbers to 8 bits; 0 if GEMMs compute in 16.
  double cast(const MovedNumbers& numbers) const;
  double launches(double share) const;

  /// Two collectives, around attention and around the network, in F and again in I. There is only
  /// one if every expert is whole on its rank, which then processes its own part of the sequence.
  double tensor_collectives(bool around_network) const;
  double expert_collectives() const;
  /// With sequence parallelism, inputs are saved in parts and gathered again in I, beside a GEMM.
  double regather_time() const;
  /// Whether the device's best kernels of attention are those of flash attention 2.
  bool has_flash_2_alone() const;
  /// All keys and values of the sequence are gathered in F; their gradients are scattered in I.
  double context_forward() const;
  double context_backward() const;
  /// Return the time of the kernels around the steps of PyTorch's ring attention; 0 for other
  /// runtimes.
  double ring_forward() const;
  double ring_backward() const;

 private:
  double gain() const;  ///< rate of the GEMMs with weights over 16-bit ones
  double grouped_time(double compute, double bytes) const;
  double gemm_rate(double gain, const GemmShape& shape) const;
  double gemm_time(double gain, const GemmShape& shape) const;
  double measured_ratio(const GemmShape& shape) const;
  PhaseTimes gemm_phases(double gain, const GemmShape& shape) const;
  double gradient_time(const GemmShape& shape) const;
  double core_flops() const;
  /// How fast the kernels of attention's core are.
  struct CoreKernels {
    double fraction = 0;     ///< of the peak, with large heads on a full device
    double half_blocks = 0;  ///< blocks of queries per SM at which they reach half of that
    double half_head = 0;    ///< the same for the size of heads
  };
  double core_time(double flops, const CoreKernels& kernels) const;
  double expert_exchange() const;
  /// Kernels that move so many bytes per number of the tokens' copies, one for each expert.
  double of_copies(double bytes, std::int64_t width) const;
  /// PyTorch gathers and scatters along a tensor's first dimension. Sequences are the second, so a
  /// gathered tensor is copied into their order, and one to scatter out of it
  /// (torch/distributed/_functional_collectives.py). The time of both copies.
  Nanos sequence_copies(double bytes) const;
  double context_collective(double share) const;
  double ring_moves(double first_bytes, double step_bytes) const;
  double exposed_time(Nanos collective, double exposed) const;

  const ModelOnDevices& on_;
};

}  // namespace bubblescope::inline sim
