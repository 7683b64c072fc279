// Runtimes: frameworks by what they hide, fuse, shard and launch.
//
// A runtime sets together which communication is exposed, how gradients add up, what is sharded,
// how long the host takes to launch a layer, and how well its kernels are fused. What users set
// singly replaces the runtime's choice.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/registry.h"
#include "sim/model/layer_cost.h"

namespace bubblescope::inline sim {

/// A known runtime, registered by a file in presets/.
struct RuntimeDef {
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  std::string source;  ///< where its rules come from
  CostAssumptions assumptions = {};
  std::int32_t zero_stage = 1;   ///< unless another is chosen
  bool pytorch = false;          ///< Parallelism::pytorch
  Bytes logit_bytes = 4;         ///< Parallelism::logit_bytes
  std::string errors_of = {};    ///< runtime whose published errors apply to it; empty: its own
  bool names_modules = false;    ///< whether it recomputes modules by Megatron-Core's names
  bool host_limited = false;     ///< whether hosts limited some of its published dense runs
  bool torch_attention = false;  ///< whether attention is PyTorch's scaled_dot_product_attention
  bool cudnn_on_hopper = false;  ///< whether that prefers cuDNN on Hopper, too
};

using RuntimeRegistrar = Registrar<RuntimeDef>;

/// The runtime's assumptions on a device. On Blackwell, and since its release 2.11 on Hopper,
/// PyTorch's attention prefers the kernels of cuDNN to flash attention 2
/// (check_prefer_cudnn_attention in its sdp_utils.cpp).
CostAssumptions assumptions_on(const RuntimeDef& runtime, const Gpu& gpu);

/// Returns RuntimeDef::names_modules of a runtime; false for an unknown one.
bool names_modules(const std::string& runtime);

/// The runtime of models for which none is chosen.
inline constexpr std::string_view kDefaultRuntime = "megatron";

/// The names of all assumptions.
std::vector<std::string> list_assumptions();

/// Sets one assumption, of the runtime's or of the device's kernels, by its name in
/// list_assumptions() ("elementwise_traffic"). Throws Error for an unknown name and for a value
/// that it cannot have: below 0, a fraction above 1, a rate above the device's peak.
void assume(ModelOnDevices& on, std::string_view name, double value);

/// The value that assume() would set; for a rate that a device does not state, 0. Throws Error for
/// an unknown name.
double assumed_value(const ModelOnDevices& on, std::string_view name);

}  // namespace bubblescope::inline sim
