// The modules of a layer that its backward may recompute, by Megatron-Core's names.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/ir/named.h"

namespace bubblescope::inline sim {

enum class RecomputeModule : std::uint8_t {
  kCoreAttention,
  kLayerNorm,
  kUpProjection,
  kNetwork,
  kExpertActivation,
  kSharedExperts,
  kExperts,
};

inline constexpr std::array<Named<RecomputeModule>, 7> kRecomputeModules{{
    {RecomputeModule::kCoreAttention, "core_attn"},
    {RecomputeModule::kLayerNorm, "layernorm"},
    {RecomputeModule::kUpProjection, "mla_up_proj"},
    {RecomputeModule::kNetwork, "mlp"},
    {RecomputeModule::kExpertActivation, "moe_act"},
    {RecomputeModule::kSharedExperts, "shared_experts"},
    {RecomputeModule::kExperts, "moe"},
}};

/// A set of modules.
class RecomputeModules {
 public:
  void add(RecomputeModule module) { bits_ |= bit(module); }
  bool has(RecomputeModule module) const { return (bits_ & bit(module)) != 0; }
  bool empty() const { return bits_ == 0; }
  bool operator==(const RecomputeModules&) const = default;

 private:
  static std::uint32_t bit(RecomputeModule module) {
    return std::uint32_t{1} << static_cast<std::uint32_t>(module);
  }

  std::uint32_t bits_ = 0;
};

/// The set that names with commas between them name; empty where one is unknown.
RecomputeModules find_modules(std::string_view names);
/// The names of a set's modules, in the order of kRecomputeModules: "core_attn,mlp".
std::string to_text(RecomputeModules modules, std::string_view separator = ",");

}  // namespace bubblescope::inline sim
