// The part of a forward that is recomputed before its backward.
#pragma once

#include <cstdint>
#include <string_view>

namespace bubblescope::inline sim {

/// The part of a stage's forward that is recomputed before its backward instead of being saved.
enum class Recompute : std::uint8_t {
  kNone,       ///< nothing: the forward saves all activations
  kSelective,  ///< the core of attention, which is large and cheap to recompute
  kFull,       ///< everything, from the stage's input
};

/// Returns "none", "selective" or "full".
std::string_view name(Recompute recompute);

}  // namespace bubblescope::inline sim
