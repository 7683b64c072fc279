// Runtimes. Rules come from each framework's source or documentation; the numbers that are fitted
// are listed, with what they were fitted to, in docs/accuracy_published.md.
#include <vector>

#include "sim/model/runtime.h"

namespace bubblescope::inline sim {
namespace {

/// Without Megatron-LM's --cross-entropy-loss-fusion, logits pass through kernels of their own: as
/// 32-bit numbers they are cast, reduced to the maximum, reduced by it, exponentiated, summed and
/// divided in F, and scaled and cast in the backward (core/tensor_parallel/cross_entropy.py; since
/// 2020 in megatron/mpu/cross_entropy.py).
CostAssumptions with_unfused_loss() {
  CostAssumptions assumed;
  assumed.loss_forward_bytes = 6 + 4 + 8 + 8 + 4 + 8;
  assumed.loss_backward_bytes = 8 + 6;
  return assumed;
}

CostAssumptions megatron() {
  CostAssumptions assumed = with_unfused_loss();
  assumed.host_layer = 2'100'000;
  assumed.host_experts = 1'800'000;
  assumed.host_expert = 140'000;
  return assumed;
}

/// Sends block, gradients are added by a kernel of their own, scores are often saved.
CostAssumptions megatron_2021() {
  CostAssumptions assumed = with_unfused_loss();
  assumed.message_exposed = 1;
  assumed.accumulation_bytes = 12;
  assumed.gradients_exposed = 1;
  assumed.flash_attention_2 = 1;
  assumed.host_layer = 800'000;
  assumed.host_tensor = 150'000;
  return assumed;
}

/// Recipes of Megatron-Bridge dispatch tokens with DeepEP or Hybrid-EP
/// (moe_flex_dispatcher_backend), or run an all-to-all over nodes beside another micro-batch
/// (moe_a2a_overlap), whose exposed part is closer to that of the former than to a whole one. They
/// add gradients in 16 bits (grad_reduce_in_fp32 off), and fuse the loss
/// (cross_entropy_fusion_impl).
CostAssumptions nemo() {
  CostAssumptions assumed = megatron();
  assumed.tensor_exposed = 0.4;
  assumed.context_exposed = 0.3;
  assumed.elementwise_traffic = 0.62;
  assumed.dispatch_once = 1;
  assumed.gradient_bytes = 0;
  assumed.loss_forward_bytes = 16;
  assumed.loss_backward_bytes = 8;
  return assumed;
}

/// The Transformer Engine of this release preferred flash attention 2 to cuDNN's kernels on Hopper,
/// too.
CostAssumptions nemo_24_07() {
  CostAssumptions assumed = nemo();
  assumed.flash_attention_2 = 1;
  return assumed;
}

/// Recipes of its releases since 26.06 for experts in 8 bits on GB200 and GB300: one fused kernel
/// for them (cutedsl_fused_grouped_mlp), the all-to-all beside another micro-batch
/// (moe_a2a_overlap) and whole iterations as CUDA graphs (cuda_graph_impl="full_iteration"), which
/// no host limits.
CostAssumptions megatron_bridge_graphs() {
  CostAssumptions assumed = nemo();
  assumed.experts_fused = 1;
  assumed.expert_exposed = 0;
  assumed.iteration_graphs = 1;
  return assumed;
}

/// Its pipeline calls torch.distributed.send and recv, which block one after the other: between two
/// ops of a stage, an activation is received and then a gradient sent, or the reverse
/// (runtime/pipe/schedule.py, TrainSchedule; runtime/pipe/p2p.py).
CostAssumptions deepspeed() {
  CostAssumptions assumed = megatron_2021();
  assumed.host_layer = 1'100'000;
  assumed.receives_exposed = 1;
  assumed.host_tensor = 0;
  assumed.host_pass = 1'000'000;
  return assumed;
}

/// Beside the gather and the scatter that every runtime has, PyTorch's kernels copy tokens with
/// padding (8 bytes per number) and out of it (4), and weigh them as 32-bit numbers: in one
/// compiled kernel (4), or by casts, a product and a cast back (20; torchtitan, models/moe.py, of
/// 2025).
constexpr double kCompiledRouting = 16;
constexpr double kEagerRouting = 32;

/// Gradients of a micro-batch are joined into one flat tensor, which is then divided: 4 bytes each
/// per weight (torch/distributed/fsdp/_runtime_utils.py, _reduce_grad).
CostAssumptions fsdp() {
  CostAssumptions assumed;
  assumed.accumulation_bytes = 8;
  assumed.elementwise_traffic = 1.27;
  assumed.eager_kernels = 1;
  assumed.context_ring = 1;
  assumed.attention_quality = 0.6;
  assumed.flash_attention_2 = 1;
  assumed.routing_bytes = kEagerRouting;
  assumed.host_layer = 500'000;
  return assumed;
}

/// FSDP2 copies gathered weights out of its buffer, in F and in I (4 bytes each per weight), and
/// gradients, as 32-bit numbers, into another (6; torch/distributed/fsdp/_fully_shard/
/// _fsdp_collectives.py). Compiled, the loss reads 16-bit logits for their maximum and for their
/// sum in F; in the backward it reads them again and writes their gradients (torch/_inductor fuses
/// cast, softmax and loss).
CostAssumptions torchtitan() {
  CostAssumptions assumed;
  assumed.loss_forward_bytes = 2 + 2;
  assumed.loss_backward_bytes = 2 + 2;
  assumed.accumulation_bytes = 14;
  assumed.context_ring = 1;
  assumed.flash_attention_2 = 1;
  assumed.weighed_early = 1;
  assumed.routing_bytes = kCompiledRouting;
  assumed.host_layer = 300'000;
  return assumed;
}

/// FSDP2 with the kernels of Transformer Engine, launched one by one as under FSDP, and DeepEP
/// (attn: te, dispatcher: deepep); tokens are weighed in the experts' activation function. Its loss
/// is not compiled: in 16 bits it reads logits twice and writes the log-softmax; the backward
/// writes the loss's gradient, reads it twice and the log-softmax, and writes that of the logits.
CostAssumptions nemo_automodel() {
  CostAssumptions assumed = torchtitan();
  assumed.loss_forward_bytes = 4 + 2;
  assumed.loss_backward_bytes = 2 + 4 + 2 + 2;
  assumed.flash_attention_2 = 0;
  assumed.context_ring = 0;
  assumed.dispatch_once = 1;
  assumed.routing_bytes = 0;
  assumed.host_layer = 500'000;
  return assumed;
}

RuntimeDef on_megatron_core(RuntimeDef def) {
  def.names_modules = true;
  return def;
}

const RuntimeRegistrar kMegatron{[] {
  return on_megatron_core(
      {"megatron",
       {"megatron-lm", "megatron-core"},
       "Megatron-LM since 2023: fused gradients, sharded optimizer, flash attention",
       "NVIDIA/Megatron-LM, megatron/core",
       megatron(),
       1});
}};
const RuntimeRegistrar kMegatron2021{[] {
  return RuntimeDef{
      "megatron-2021",
      {},
      "Megatron-LM of 2019 to 2022: sends block, gradients added by a kernel of their own, no "
      "sharded optimizer",
      "NVIDIA/Megatron-LM v2.x; arXiv 2104.04473 and 2205.05198",
      megatron_2021(),
      0};
}};
const RuntimeRegistrar kNemo{[] {
  return on_megatron_core(
      {"nemo",
       {"megatron-bridge"},
       "NeMo and Megatron-Bridge: Megatron-Core with overlapped tensor-parallel communication",
       "NVIDIA NeMo performance guide (tp_comm_overlap)",
       nemo(),
       1});
}};
const RuntimeRegistrar kNemo2407{[] {
  RuntimeDef def =
      on_megatron_core({"nemo-24.07",
                        {},
                        "NeMo until 24.07: as nemo, with flash attention 2 on Hopper, too",
                        "NVIDIA NeMo performance guides of 24.03 and 24.07, whose steps say so",
                        nemo_24_07(),
                        1});
  def.errors_of = "nemo";
  return def;
}};
const RuntimeRegistrar kMegatronBridgeGraphs{[] {
  return on_megatron_core(
      {"megatron-bridge-26.06",
       {},
       "Megatron-Bridge since 26.06, for experts in 8 bits: one fused kernel computes those of a "
       "rank, their all-to-all is hidden, whole iterations are CUDA graphs",
       "NVIDIA-NeMo/Megatron-Bridge, scripts/performance/configs",
       megatron_bridge_graphs(),
       1});
}};
const RuntimeRegistrar kDeepSpeed{[] {
  RuntimeDef def{"deepspeed",
                 {"megatron-deepspeed"},
                 "Megatron-DeepSpeed, eager: sends block, ZeRO stage 0 unless given",
                 "microsoft/DeepSpeed, runtime/pipe/engine.py",
                 deepspeed(),
                 0};
  def.host_limited = true;
  return def;
}};
RuntimeDef define_fsdp() {
  RuntimeDef def{"fsdp",
                 {},
                 "PyTorch FSDP, eager: weights gathered ahead, kernels not fused",
                 "PyTorch FSDP, torch.nn.functional.cross_entropy",
                 fsdp(),
                 3,
                 true,
                 14};
  def.torch_attention = true;
  return def;
}

/// Returns the same runtime with PyTorch since 2.11.
RuntimeDef with_cudnn(RuntimeDef def) {
  def.errors_of = def.name;
  def.name += "-2.11";
  def.summary = "as " + def.errors_of + ", with PyTorch since 2.11: attention of cuDNN on Hopper";
  def.source += "; ATen/native/transformers/cuda/sdp_utils.cpp";
  def.cudnn_on_hopper = true;
  return def;
}

const RuntimeRegistrar kFsdp{[] { return std::vector{define_fsdp(), with_cudnn(define_fsdp())}; }};
/// Its loss is flash attention's fused cross-entropy, unless a configuration says otherwise.
const RuntimeRegistrar kLlmFoundry{[] {
  return RuntimeDef{"llm-foundry",
                    {"composer"},
                    "MosaicML's llm-foundry: PyTorch FSDP, eager, with a fused loss",
                    "mosaicml/llm-foundry (loss_fn: fused_crossentropy)",
                    fsdp(),
                    3,
                    true,
                    4,
                    "fsdp"};
}};
/// Its loss keeps logits, log-softmax and gradients in 16 bits (fp32_upcast: false).
const RuntimeRegistrar kNemoAutomodel{[] {
  return RuntimeDef{
      "nemo-automodel",
      {"automodel"},
      "NeMo Automodel: FSDP2, kernels of Transformer Engine, tokens sent once (DeepEP)",
      "NVIDIA-NeMo/Automodel, components/moe and examples/benchmark/configs",
      nemo_automodel(),
      3,
      true,
      6};
}};
RuntimeDef define_torchtitan() {
  RuntimeDef def{
      "torchtitan",
      {},
      "torchtitan with torch.compile, since 2025: FSDP2, fused kernels and loss, every second "
      "GEMM recomputed under selective recomputation",
      "pytorch/torchtitan, docs and distributed/activation_checkpoint.py",
      torchtitan(),
      3,
      true};
  def.torch_attention = true;
  return def;
}

const RuntimeRegistrar kTorchtitan{[] {
  return std::vector{define_torchtitan(), with_cudnn(define_torchtitan())};
}};

}  // namespace
}  // namespace bubblescope::inline sim
