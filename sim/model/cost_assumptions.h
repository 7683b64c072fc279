// Assumptions about kernels, hosts and communication that devices' tables do not hold.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sim/ir/named.h"
#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// Precision of the GEMMs with weights. The core of attention and the head always compute in 16
/// bits.
enum class MatrixType : std::uint8_t { kBf16, kFp16, kFp8 };

inline constexpr std::array<Named<MatrixType>, 3> kMatrixTypes{{
    {MatrixType::kBf16, "bf16"},
    {MatrixType::kFp16, "fp16"},
    {MatrixType::kFp8, "fp8"},
}};

/// Assumptions that are not in the devices' tables. A runtime sets them together, assume() sets
/// each one, and explain() prints them.
struct CostAssumptions {
  double memory_efficiency = 0.9;  ///< fraction of the stated bandwidth for GEMMs and optimizers
  /// The efficiency of kernels for norms, biases, dropout and activation functions, fitted to F and
  /// I of arXiv 2401.10241, table 9, and of arXiv 2205.05198, table 4.
  double elementwise_efficiency = 0.67;
  /// Bytes moved between GEMMs over those of arXiv 2205.05198's kernels: above 1 if not fused.
  double elementwise_traffic = 1;
  /// 1 if rotations of queries and keys, and the gates of networks, are PyTorch's own kernels.
  double eager_kernels = 0;
  Nanos launch = 4'000;         ///< per kernel: the time to occupy all SMs and to drain them
  double forward_kernels = 18;  ///< per layer; its input gradient has as many, W four
  /// The host's time to launch a layer's F, its recomputation or its backward. Device and host work
  /// side by side: a stage takes the longer of both.
  Nanos host_layer = 0;
  /// The same, in addition, for the collectives of tensor ranks, at every doubling of their number:
  /// each waits for the slowest host.
  Nanos host_tensor = 0;
  /// The same, in addition, for a layer with experts (router, permutation, all-to-all, and the
  /// counts that the host reads), and for each expert of a rank, whose GEMMs and casts are launched
  /// one by one.
  Nanos host_experts = 0;
  Nanos host_expert = 0;
  Nanos host_pass = 0;  ///< the same for a stage's forward or backward, beside its layers
  /// 1 with CUDA_LAUNCH_BLOCKING=1: the host waits for every kernel, so that device and host do not
  /// work side by side, and their times add up.
  double launch_blocking = 0;
  /// 1 if whole iterations are CUDA graphs, whose kernels no host launches.
  double iteration_graphs = 0;
  double flash_backward = 2.5;   ///< attention core, FLOPs of the backward over the forward
  double attention_quality = 1;  ///< rate of the runtime's flash attention over the device's best
  /// 1 with flash attention 2, which uses matrix units as Ampere has them: 1 / 1.6 of the rate on
  /// Hopper (arXiv 2407.08608, figures 5 and 6), and no more on Blackwell.
  double flash_attention_2 = 0;
  double flash_attention_4 = 0;  ///< 1 with it: on Blackwell it is faster than cuDNN's kernels
  bool causal = true;            ///< half of the scores are never computed
  double tensor_exposed = 1;     ///< fraction of the tensor ranks' collectives that is not hidden
  double context_exposed = 0.5;  ///< the same for the context ranks' key and value exchange
  /// 1 if context ranks exchange keys and values as PyTorch's ring attention does.
  double context_ring = 0;
  double expert_exposed = 1;  ///< the same for the experts' all-to-all
  /// Bytes moved per weight and micro-batch if a separate kernel accumulates gradients; otherwise
  /// W's GEMMs do it. 10 to 12 if 16-bit gradients are added to 32-bit ones (Megatron-LM without
  /// gradient accumulation fusion).
  double accumulation_bytes = 0;
  /// Bytes moved per weight and micro-batch, beside the compute of W's GEMM, where that adds to a
  /// 32-bit gradient on devices whose compute hides no traffic (KernelRates::grouped_traffic): half
  /// of the 8 that it reads and writes (SimuMax's B200: 8 % slower than F, of 262 GEMMs).
  double gradient_bytes = 4;
  /// Bytes moved per logit by the kernels of the loss, in F and in the backward.
  double loss_forward_bytes = 16;
  double loss_backward_bytes = 8;
  /// The fraction of a message between pipeline ranks that blocks the op that sends it; 1 if a
  /// runtime waits for its sends, like Megatron-LM without --overlap-p2p-communication.
  double message_exposed = 0;
  /// The part of that time for which the receiving op waits as well. It is 1 if sends and receives
  /// block one after the other, as in DeepSpeed's pipeline (runtime/pipe/p2p.py).
  double receives_exposed = 0;
  /// The exposed fraction of the gradients' reduction, and of the gathering of new weights: a
  /// sixteenth is the last bucket; 1 where a runtime reduces after the last backward.
  double gradients_exposed = 1.0 / 16;
  /// The fraction of the device's SMs that a collective occupies while it runs beside compute,
  /// which it slows down accordingly: 20 of an H800's 132 (arXiv 2412.19437, section 3.5.1).
  double collective_sms = 20.0 / 132;
  double grouped_efficiency = 1;  ///< grouped GEMMs of experts: their rate over plain ones
  /// 1 if one kernel computes all of a rank's experts, with their activation function and the cast
  /// of its output, so that compute hides their memory traffic.
  double experts_fused = 0;
  /// 1 if tokens are sent once to every node and rank with some of their experts (DeepEP); 0 if
  /// every copy is sent (NCCL's all-to-all).
  double dispatch_once = 0;
  bool dispatch_chosen = false;  ///< dispatch_once was given, and holds whatever the model limits
  double ranks_per_token = 0;    ///< with a token's experts; 0: as many as random routing hits
  /// Bytes that kernels around the permutation move in F, per number of a token and for each of its
  /// experts; the backward moves twice that. 0 where they are fused.
  double routing_bytes = 0;
  /// 1 if tokens are weighed before the experts' last GEMM, so that no backward needs its output;
  /// 0 if its output is weighed.
  double weighed_early = 0;
  double expert_imbalance = 1;  ///< tokens of the busiest expert rank over the mean
  /// Bytes moved per number to cast the inputs of 8-bit GEMMs: 2 read, 1 written, and 1 transposed.
  double cast_bytes = 4;
  /// Each op of an overlapped pair hides the other's exchange (Overlap::kFused).
  bool pairs_hide_exchange = false;
  double slowdown = 1;  ///< of all compute: calibrates against a measured step

  bool operator==(const CostAssumptions&) const = default;
};

/// An assumption that the user replaced.
struct ReplacedAssumption {
  std::string what;  ///< "tensor_exposed", as the user wrote it
  std::string name;  ///< as assume() takes it: "tensor_exposed"
  double usual = 0;  ///< its value otherwise
};

}  // namespace bubblescope::inline sim
