// Kernels by a roofline, collectives by their rings.
#include "sim/model/layer_timer.h"

#include <algorithm>

#include "sim/ir/range.h"
#include "sim/model/expert_exchange.h"
#include "sim/model/head_alignment.h"

namespace bubblescope::inline sim {

namespace {

/// Blocks of 128 queries per SM at which flash attention reaches half of its best rate, forward and
/// backward: fitted to 64 kernels of B200 and 24 of A100 (SimuMax, data of version 2025).
constexpr double kHalfBlocksForward = 2.3;
constexpr double kHalfBlocksBackward = 0.7;
constexpr double kQueriesOfBlock = 128;
/// A head of d numbers, up to 128, reaches d / (d + h) of the rate of large ones; larger heads gain
/// nothing. On H100 (arXiv 2407.08608, figures 5 and 6, 16k tokens), heads of 64, 128 and 256 have
/// 413, 595 and 581 TFLOP/s in cuDNN, and in flash attention 2 324, 370 and 326; backward, those of
/// 64 and 128 have 433 and 516, and 291 and 322. In flash attention 2 on an RTX 4090 (apache/tvm,
/// tl_doc/flash_perf.md, causal), heads of 32, 64 and 128 have 127, 142 and 151; backward 86, 97
/// and 99.
constexpr double kHalfHeadForward = 100;
constexpr double kHalfHeadBackward = 32;
constexpr double kHalfHeadOfFlash2 = 12;
constexpr double kFullHead = 128;
/// cuDNN's attention over flash attention 2 in the same figures: 539 over 335 TFLOP/s in F, with a
/// causal mask, and 516 over 322 in the backward.
constexpr double kGainOverFlash2 = 1.6;
/// Flash attention 2 on Blackwell, in FLOPs per second: on B200 heads of 128 have 352 to 362
/// TFLOP/s in F (meta-pytorch/tritonbench pull request 171, 2k to 8k tokens), and heads of 64 have
/// 380, and 334 in the backward (Dao-AILab/flash-attention issue 1589). That is what Hopper
/// reaches, because its instructions are those of Ampere.
constexpr double kFlash2OnBlackwell = 355e12;
/// Flash attention 4 over cuDNN's kernels on Blackwell: 1418 TFLOP/s in F and 1209 in the backward,
/// or 1118 without pairs of SMs (Dao-AILab/flash-attention pull request 2280: causal, 8k tokens,
/// heads of 128), where SimuMax's B200 has 1142 and 933; at most 1.3 in arXiv 2603.05451.
constexpr double kGainOfFlash4 = 1.25;
/// Kernels that permute tokens, over the stated memory bandwidth: SimuMax's B200, 0.501 forward and
/// 0.511 backward.
constexpr double kPermuteShare = 0.50;
/// Latent attention, whose queries are longer than its values, over attention with equal ones: the
/// same kernels of SimuMax, heads of 192 and 128.
constexpr double kLatentForward = 0.93;
constexpr double kLatentBackward = 0.8;
/// PyTorch's ring attention (torch/distributed/tensor/experimental/_attention.py, of December 2024)
/// computes a step for the keys and values of every context rank. In bytes per number of a rank's
/// queries, its own kernels move, in F, for contiguous keys and values (8), the conversion of the
/// output to 32 bits (6) and back (6); for every further step, to join keys and values (8), for the
/// conversion (6) and to merge both outputs (12, 8 and 12).
constexpr double kRingForward = 20;
constexpr double kRingForwardStep = 46;
/// In the backward, zeros for three gradients of 32 bits (12), contiguous keys and values (8), sums
/// (30), joined gradients of keys and values (16), conversions (18); for every further step, joined
/// keys and values (8), sums in halves of the gradients that are put together again (26), the sum
/// of the queries' gradients (10) and joined gradients (16).
constexpr double kRingBackward = 84;
constexpr double kRingBackwardStep = 60;
/// The 32-bit gradients of keys and values pass through all ranks in the backward, beside the
/// 16-bit keys and values, which are gathered again.
constexpr double kRingGradients = 2;

}  // namespace

/// Mask and softmax read 2 bytes and write 2; dropout does the same and writes a mask.
double score_bytes_forward(const Transformer& model) { return model.dropout ? 9 : 4; }
/// The gradient of softmax reads two tensors and writes one; dropout as in the forward.
double score_bytes_backward(const Transformer& model) { return model.dropout ? 11 : 6; }

double LayerTimer::gain() const {
  return on_.matrices == MatrixType::kFp8 ? on_.gpu.kernels.fp8_gain : 1;
}

double LayerTimer::gemm_rate(double gain, const GemmShape& shape) const {
  double rate = gain * on_.gpu.sustained_flops();
  for (const double side : {shape.rows, shape.inputs, shape.outputs})
    rate *= side / (side + gain * on_.gpu.kernels.half_size);
  return rate;
}

double LayerTimer::gemm_time(double gain, const GemmShape& shape) const {
  const double bytes =
      2 * (shape.rows * shape.inputs + shape.inputs * shape.outputs + shape.rows * shape.outputs);
  return std::max(shape.flops() / gemm_rate(gain, shape) * 1e9, memory(bytes));
}

double LayerTimer::measured_ratio(const GemmShape& shape) const {
  return interpolate_ratio(on_.gpu.kernels.gemms, shape,
                           [this](const GemmShape& each) { return gemm_time(1, each) / 1e9; });
}

bool LayerTimer::adds_to_32_bits() const {
  const bool has_32_bits =
      on_.parallel.gradients == Gradients::kFp32 || on_.parallel.shrinks_gradients;
  return has_32_bits && on_.assumptions.accumulation_bytes == 0 && !on_.parallel.pytorch;
}

/// The memory traffic of a gradient that the compute of W's GEMM does not hide.
double LayerTimer::gradient_time(const GemmShape& shape) const {
  if (!adds_to_32_bits()) return 0;
  return memory(on_.gpu.kernels.grouped_traffic * on_.assumptions.gradient_bytes * shape.inputs *
                shape.outputs);
}

/// Rates that were measured in 16 bits hold for 8-bit GEMMs as well, beside their gain.
PhaseTimes LayerTimer::gemm_phases(double gain, const GemmShape& shape) const {
  const double time = gemm_time(gain, shape) * on_.assumptions.slowdown;
  if (on_.gpu.kernels.gemms.empty()) return {time, time, time + gradient_time(shape)};
  const auto in_pass = [&](GemmPass pass) {
    return time * measured_ratio({pass, shape.rows, shape.inputs, shape.outputs});
  };
  return {in_pass(GemmPass::kForward), in_pass(GemmPass::kInputGrad),
          in_pass(GemmPass::kWeightGrad)};
}

PhaseTimes LayerTimer::gemm16(double rows, double inputs, double outputs) const {
  return gemm_phases(1, {GemmPass::kForward, rows, inputs, outputs});
}

PhaseTimes LayerTimer::gemm(double rows, double inputs, double outputs) const {
  return gemm_phases(gain(), {GemmPass::kForward, rows, inputs, outputs});
}

double LayerTimer::grouped_time(double compute, double bytes) const {
  const double traffic = memory(bytes);
  const double beside =
      (1 - on_.assumptions.experts_fused) * on_.gpu.kernels.grouped_traffic * traffic;
  return std::max({compute, traffic, compute + beside});
}

double LayerTimer::grouped_gemm(double experts, const GemmShape& shape) const {
  // All experts' tokens fill the device together, so their number limits no expert's rate.
  const double rate = on_.assumptions.grouped_efficiency *
                      gemm_rate(gain(), {shape.pass, 1e9, shape.inputs, shape.outputs});
  const double gradient = on_.parallel.gradients == Gradients::kFp32 ? 8 : 4;
  const double bytes =
      2 * shape.rows * (shape.inputs + shape.outputs) +
      (shape.pass == GemmPass::kWeightGrad ? gradient : 2) * shape.inputs * shape.outputs;
  const double ratio =
      measured_ratio({shape.pass, experts * shape.rows, shape.inputs, shape.outputs});
  return experts * grouped_time(ratio * shape.flops() / rate * 1e9, bytes) *
         on_.assumptions.slowdown;
}

double LayerTimer::memory(double bytes) const {
  return bytes / (on_.gpu.memory_bytes_per_second * on_.assumptions.memory_efficiency) * 1e9;
}

double LayerTimer::moved(double bytes) const {
  return memory(bytes) * on_.assumptions.memory_efficiency / on_.assumptions.elementwise_efficiency;
}

double LayerTimer::core_flops() const {
  const Transformer& model = on_.model;
  const double rotary = model.latent ? static_cast<double>(model.latent->rotary_size) : 0;
  const double width =
      static_cast<double>(model.heads) * (2 * static_cast<double>(model.head_size) + rotary);
  // Whole blocks of keys are computed.
  const double share =
      on_.assumptions.causal && on_.parallel.flash_attention
          ? 0.5 * estimate_attended_share(model, on_.parallel.sequence, kQueriesOfBlock)
          : 1;
  return share * 2 * tokens() * static_cast<double>(on_.parallel.sequence) * per_tensor_rank(width);
}

namespace {

/// The rate of a head's kernels over that of large heads. Kernels compute padded heads.
double estimate_head_share(std::int64_t head_size, double half_size) {
  const auto size = static_cast<double>(head_size);
  const auto padded = static_cast<double>(pad_head(head_size));
  const double full = std::min(padded, kFullHead);
  return size / padded * full / (full + half_size) * (kFullHead + half_size) / kFullHead;
}

}  // namespace

/// Hopper, data-center Blackwell and AMD have kernels of their own. Ampere, Ada and Blackwell
/// boards on PCI Express have the instructions for flash attention 2 alone.
bool LayerTimer::has_flash_2_alone() const {
  const std::string_view generation = on_.gpu.generation;
  return generation.starts_with("ampere") || generation == "ga10x" || generation == "ada" ||
         generation == "blackwell-rtx";
}

/// Returns the FLOPs divided by the rate of flash attention's kernels.
double LayerTimer::core_time(double flops, const CoreKernels& kernels) const {
  const Gpu& gpu = on_.gpu;
  const double blocks = tokens() * per_tensor_rank(static_cast<double>(on_.model.heads)) /
                        kQueriesOfBlock / gpu.kernels.multiprocessors;
  const bool flash2 = has_flash_2_alone() || on_.assumptions.flash_attention_2 > 0;
  double full_rate = gpu.peak_flops * kernels.fraction * on_.assumptions.attention_quality;
  if (flash2 && !has_flash_2_alone()) full_rate /= kGainOverFlash2;
  if (flash2 && gpu.generation == "blackwell") full_rate = std::min(full_rate, kFlash2OnBlackwell);
  if (!flash2 && gpu.generation == "blackwell")
    full_rate *= 1 + (kGainOfFlash4 - 1) * on_.assumptions.flash_attention_4;
  const double of_head =
      estimate_head_share(on_.model.head_size, flash2 ? kHalfHeadOfFlash2 : kernels.half_head);
  const double rate = full_rate * blocks / (blocks + kernels.half_blocks) * of_head;
  return flops / rate * 1e9 * on_.assumptions.slowdown;
}

double LayerTimer::core_forward() const {
  if (on_.parallel.flash_attention)
    return core_time(core_flops(),
                     {on_.gpu.kernels.attention_forward * (on_.model.latent ? kLatentForward : 1),
                      kHalfBlocksForward, kHalfHeadForward});
  // Plain GEMMs, over all scores.
  const double rate = are_heads_aligned(on_.model)
                          ? 0.75 * on_.gpu.reachable_flops
                          : on_.gpu.kernels.unaligned_share * on_.gpu.peak_flops;
  const double time = core_flops() / rate * 1e9;
  return std::max(time * on_.assumptions.slowdown, scores(4));
}

double LayerTimer::core_backward() const {
  if (!on_.parallel.flash_attention) return 2 * core_forward();
  return core_time(on_.assumptions.flash_backward * core_flops(),
                   {on_.gpu.kernels.attention_backward * (on_.model.latent ? kLatentBackward : 1),
                    kHalfBlocksBackward, kHalfHeadBackward});
}

double LayerTimer::scores(double bytes) const {
  if (on_.parallel.flash_attention) return 0;
  const auto heads = static_cast<double>(on_.model.heads);
  return moved(tokens() * static_cast<double>(on_.parallel.sequence) * per_tensor_rank(heads) *
               bytes);
}

double LayerTimer::elementwise(const MovedNumbers& numbers) const {
  return on_.assumptions.elementwise_traffic *
         moved(2 * tokens() * (per_norm_rank(numbers.around) + per_tensor_rank(numbers.split)));
}

double LayerTimer::eager(const MovedNumbers& numbers) const {
  return on_.assumptions.eager_kernels *
         moved(2 * tokens() * (per_norm_rank(numbers.around) + per_tensor_rank(numbers.split)));
}

double LayerTimer::permutation() const {
  const double tokens_here = per_tensor_rank(tokens() * on_.parallel.expert_split());
  return memory(2 * tokens_here * count_permuted(on_)) * on_.assumptions.memory_efficiency /
         kPermuteShare;
}

double LayerTimer::of_copies(double bytes, std::int64_t width) const {
  const double copies = per_tensor_rank(tokens() * on_.parallel.expert_split()) *
                        static_cast<double>(on_.model.experts->per_token);
  return moved(bytes * copies * static_cast<double>(width));
}

double LayerTimer::routing(double bytes) const { return of_copies(bytes, on_.model.hidden); }

double LayerTimer::expert_biases(double bytes, std::int64_t width) const {
  return on_.model.experts->biased ? of_copies(bytes, width) : 0;
}

double LayerTimer::cast(const MovedNumbers& numbers) const {
  if (on_.matrices != MatrixType::kFp8) return 0;
  return moved(on_.assumptions.cast_bytes * tokens() *
               (per_norm_rank(numbers.around) + per_tensor_rank(numbers.split)));
}

double LayerTimer::launches(double share) const {
  return share * on_.assumptions.forward_kernels * static_cast<double>(on_.assumptions.launch);
}

double LayerTimer::tensor_collectives(bool around_network) const {
  const double bytes = 2 * tokens() * static_cast<double>(on_.model.hidden);
  const GroupLink link = find_group_link(on_.gpu, on_.parallel.tensor, 1);
  const Nanos all_reduce = estimate_all_reduce_time(bytes, on_.parallel.tensor, link);
  return exposed_time((around_network ? 2 : 1) * (all_reduce + sequence_copies(bytes)),
                      on_.assumptions.tensor_exposed);
}

Nanos LayerTimer::sequence_copies(double bytes) const {
  if (!on_.parallel.pytorch || on_.parallel.norm_split() == 1) return 0;
  return round_nanos(2 * memory(2 * bytes), "copies of a gathered sequence");
}

double LayerTimer::expert_collectives() const {
  return exposed_time(static_cast<Nanos>(expert_exchange()), on_.assumptions.expert_exposed);
}

double LayerTimer::regather_time() const {
  if (!on_.parallel.sequence_parallel) return 0;
  const double bytes = 2 * tokens() * static_cast<double>(on_.model.hidden);
  const GroupLink link = find_group_link(on_.gpu, on_.parallel.tensor, 1);
  return exposed_time(2 * estimate_all_gather_time(bytes, on_.parallel.tensor, link), 0);
}

/// Collectives that move `share` times the keys and values of the sequence. PyTorch repeats those
/// that several heads share before it exchanges them.
double LayerTimer::context_collective(double share) const {
  const Parallelism& parallel = on_.parallel;
  const Transformer& model = on_.model;
  const double shared = 2 * static_cast<double>(model.key_value_heads * model.head_size);
  const double repeated = 2 * static_cast<double>(model.heads * model.head_size);
  const double width = shared + on_.assumptions.context_ring * (repeated - shared);
  const double bytes = 2 * per_tensor_rank(width) * tokens() * parallel.context;
  const GroupLink link = find_group_link(on_.gpu, parallel.context, parallel.tensor);
  return exposed_time(estimate_all_gather_time(share * bytes, parallel.context, link),
                      on_.assumptions.context_exposed);
}

double LayerTimer::context_forward() const { return context_collective(1); }

double LayerTimer::context_backward() const {
  return context_collective(1 + kRingGradients * on_.assumptions.context_ring);
}

double LayerTimer::ring_moves(double first_bytes, double step_bytes) const {
  const std::int32_t steps = on_.parallel.context - 1;
  if (steps == 0 || on_.assumptions.context_ring == 0) return 0;
  const double numbers =
      tokens() * per_tensor_rank(static_cast<double>(on_.model.heads * on_.model.head_size));
  return on_.assumptions.context_ring * moved((first_bytes + steps * step_bytes) * numbers);
}

double LayerTimer::ring_forward() const { return ring_moves(kRingForward, kRingForwardStep); }

double LayerTimer::ring_backward() const { return ring_moves(kRingBackward, kRingBackwardStep); }

double LayerTimer::expert_exchange() const {
  const Parallelism& parallel = on_.parallel;
  if (parallel.expert <= 1) return 0;
  const double bytes = 2 * per_tensor_rank(tokens()) * static_cast<double>(on_.model.hidden);
  return static_cast<double>(2 * estimate_exchange_time(on_.gpu, dispatch_of(on_, bytes),
                                                        parallel.expert, parallel.expert_split()));
}

double LayerTimer::exposed_time(Nanos collective, double exposed) const {
  return static_cast<double>(collective) *
         (exposed + (1 - exposed) * on_.assumptions.collective_sms);
}

}  // namespace bubblescope::inline sim
