// The versions of weights in asynchronous training.
#pragma once

#include <cstdint>
#include <optional>

namespace bubblescope::inline sim {

/// The versions of its stage's weights that an op reads and writes. Version 0 exists at the start;
/// each update creates the next one.
struct WeightUse {
  std::int32_t read = 0;
  std::optional<std::int32_t> written;  ///< for a backward that ends with an update

  bool operator==(const WeightUse&) const = default;
};

}  // namespace bubblescope::inline sim
