// The placements that a search may choose from.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::schedules {

/// How a search places stages on ranks.
enum class PlacementChoice : std::uint8_t {
  kLinear,       ///< one stage per rank
  kInterleaved,  ///< around the ranks, once per chunk
  kV,            ///< down the ranks and up again: two chunks
  kWave,         ///< down and up several times
  kFree,         ///< any of them
};

/// Returns the default number of chunks per rank: 1, 2, 2, 4 and 2 for the choices in their order.
std::int32_t default_chunks(PlacementChoice choice);

/// Why this number of chunks is refused, in one sentence with the remedy; empty: it is not.
std::string refuse_chunks(PlacementChoice choice, std::int32_t chunks);

struct Placements {
  std::vector<std::vector<std::int32_t>> tried;  ///< the rank of every stage, for each of them
  bool all = true;                               ///< whether there are no others
};

/// A free placement assigns the stages to the ranks in any way, the same number to each, if there
/// are at most 120 such ways; else only the regular ones: zigzag, interleaved, and neighbours
/// together. `ranks_are_equal` means that ranks do not differ, so that placements that only rename
/// ranks are the same.
Placements placements(PlacementChoice choice, const Shape& shape, bool ranks_are_equal);

}  // namespace bubblescope::schedules
