// PyTorch's releases, as far as their action lists differ.
#pragma once

#include <cstdint>

namespace bubblescope {

/// A range of releases whose lists are alike, named after the first.
enum class PytorchRelease : std::uint8_t {
  k2_6,   ///< 2.6 to 2.14: its runtime waits for sends when the step ends
  k2_15,  ///< since 2.15: refuses lists in which a send or a reduction has no wait
};

}  // namespace bubblescope
