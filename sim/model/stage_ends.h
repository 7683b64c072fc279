// Why the first and the last stage of a model take longer or shorter than those between.
#pragma once

#include <array>
#include <cstdint>

#include "sim/ir/named.h"

namespace bubblescope::inline sim {

/// Determines the costs of the first and last stage when stages are cut or joined (restage.h).
enum class Ends : std::uint8_t {
  kMoreLayers,     ///< they have more or fewer layers, so that their work is cut like any other
  kHeavierLayers,  ///< each of their layers takes longer or shorter, by one factor
  kExtraWork,      ///< besides its layers, an end has an embedding or a head, which is never cut
};

/// The summary says what the ends have.
inline constexpr std::array<Named<Ends>, 3> kStageEnds{{
    {Ends::kMoreLayers, "more-layers", "more or fewer layers"},
    {Ends::kHeavierLayers, "heavier-layers", "layers that take longer or shorter"},
    {Ends::kExtraWork, "extra-work", "an embedding or a head"},
}};

}  // namespace bubblescope::inline sim
