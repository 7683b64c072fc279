// The names that training frameworks and their flags have here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bubblescope::tools {

/// Returns "fp8-format" for "--fp8_format", and "seq-len" for torchtitan's "--training.seq_len".
std::string plain_flag_name(std::string_view name);

/// Explains an unknown flag in an error message: "here it is '--zero'". Empty if no
/// framework is known to have it, or if `known`, the flags of the command, lack the one that it is
/// here.
std::string explain_framework_flag(std::string_view name, const std::vector<std::string>& known);

/// The same for several, as the beginning of a message: "no flag is called '--fp8' (here it is
/// '--precision fp8'), '--lr'". All are named, those that are something here first.
std::string list_unknown_flags(const std::vector<std::string>& names,
                               const std::vector<std::string>& known);

/// The end of an error message about an unknown precision, a normalized name: "; here 'fp8' stands
/// for all recipes of 8 bits". Empty if no framework is known to have it.
std::string explain_precision(std::string_view name);

/// The end of an error message about an unknown runtime: "; plain PyTorch is closest to 'fsdp',
/// ...". Empty if none is known to be close.
std::string explain_framework(std::string_view name);

}  // namespace bubblescope::tools
