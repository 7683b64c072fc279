// Finds presets of devices by the names that programs print.
#pragma once

#include <string>
#include <string_view>

#include "sim/model/gpu.h"

namespace bubblescope::inline sim {

/// The preset of this name, which may also be a product's name as drivers print it: "NVIDIA
/// A100-SXM4-80GB" is "a100". Null where no preset is called so.
const GpuDef* find_gpu(std::string_view name);

/// The end of an error message about an unknown name: "; did you mean 'a100'?". A product whose
/// name says more than a preset's ("Laptop", "PCIe", another size of memory) is another device, and
/// the preset is not suggested.
std::string suggest_gpu(std::string_view name);

}  // namespace bubblescope::inline sim
