// Which placements a search may choose from.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope {

/// What `--placement` says.
enum class PlacementChoice : std::uint8_t {
  kLinear,       ///< one stage per rank
  kInterleaved,  ///< around the ranks, once per chunk
  kV,            ///< down the ranks and up again: two chunks
  kWave,         ///< down and up several times
  kFree,         ///< whichever is best
};

/// Chunks per rank where --vpp does not say: 1, 2, 2, 4, 2.
std::int32_t usual_chunks(PlacementChoice choice);

/// What is wrong with a number of chunks, in one sentence with the remedy; empty: nothing.
std::string refuse_chunks(PlacementChoice choice, std::int32_t chunks);

struct Placements {
  std::vector<std::vector<std::int32_t>> tried;  ///< the rank of every stage, for each of them
  bool all = true;                               ///< whether there are no others
};

/// A free placement is any deal of the stages to the ranks, as many to each, where those are at
/// most 120; else the regular ones: zigzag, interleaved, and neighbours together. `alike`: ranks
/// differ in nothing, so that a deal that only renames them is the same.
Placements placements(PlacementChoice choice, const Shape& shape, bool alike);

}  // namespace bubblescope
