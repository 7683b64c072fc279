// --format: the form in which a command prints its result.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/ir/named.h"
#include "tools/flags/command_flags.h"

namespace bubblescope::tools {

enum class OutputFormat : std::uint8_t { kText, kJson, kCsv, kNames, kMegatron, kTorchtitan };
inline constexpr std::array<Named<OutputFormat>, 6> kOutputFormats{{
    {OutputFormat::kText, "text"},
    {OutputFormat::kJson, "json"},
    {OutputFormat::kCsv, "csv"},
    {OutputFormat::kNames, "names"},
    {OutputFormat::kMegatron, "megatron"},
    {OutputFormat::kTorchtitan, "torchtitan"},
}};

/// Adds --format with these choices, the first of which is the default.
void add_format_option(CommandFlags& app, OutputFormat& format,
                       const std::vector<OutputFormat>& choices);

}  // namespace bubblescope::tools
