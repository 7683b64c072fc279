// Words for what is recomputed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/ir/schedule.h"
#include "sim/model/recompute_modules.h"
#include "sim/model/recomputed_layers.h"
#include "tools/flags/command_flags.h"

namespace bubblescope::tools {

/// Parses "none", "selective", "full". Throws Error for anything else.
Recompute parse_recompute(const std::string& text);

inline constexpr std::int32_t kMaxRecomputedLayers = 65'536;

/// Adds --recompute-method.
void add_recompute_method_option(CommandFlags& app, std::optional<RecomputeMethod>& method);
/// Adds --recompute-num-layers with one number.
void add_recompute_layers_option(CommandFlags& app, std::optional<std::int32_t>& number);

/// The layers that --recompute-method and --recompute-num-layers name together. Throws Error where
/// one of them is missing.
RecomputedLayers choose_recomputed_layers(std::optional<RecomputeMethod> method,
                                          std::optional<std::int32_t> number);

/// Adds --recompute-modules, which names modules of a layer with commas between them.
void add_modules_option(CommandFlags& app, RecomputeModules& modules);

}  // namespace bubblescope::tools
