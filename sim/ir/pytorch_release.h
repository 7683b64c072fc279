// PyTorch's releases, grouped by the action lists that they write.
#pragma once

#include <cstdint>

namespace bubblescope::inline sim {

/// A range of releases that write the same lists, named after the first.
enum class PytorchRelease : std::uint8_t {
  kFrom26,   ///< 2.6 to 2.14: the runtime waits for sends when the step ends
  kFrom215,  ///< since 2.15: refuses lists in which a send or a reduction has no wait
};

}  // namespace bubblescope::inline sim
