// The size of a pipeline.
#pragma once

#include <cstdint>
#include <optional>

namespace bubblescope::inline sim {

/// The maximum number of ranks: a mistyped number is then an error and not a hang.
inline constexpr std::int32_t kMaxRanks = 65'536;

/// The size of a pipeline. In formulas: p = ranks, v = chunks, m = microbatches, n = slices.
struct Shape {
  std::int32_t ranks = 1;
  std::int32_t chunks = 1;  ///< stages per rank that one micro-batch passes
  std::int32_t microbatches = 1;
  std::int32_t slices = 1;                 ///< slices per sequence
  std::optional<std::int32_t> group_size;  ///< micro-batches per virtual-stage group (interleaved)

  bool operator==(const Shape&) const = default;
};

}  // namespace bubblescope::inline sim
