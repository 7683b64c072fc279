// Whether a model's ranks fit their devices, and with which gradients.
#pragma once

#include <cstddef>
#include <optional>

#include "sim/analysis/report.h"
#include "sim/predict/models.h"

namespace bubblescope::inline sim {

/// The rank that comes closest to its device's memory, or exceeds it most.
struct ModelFit {
  std::size_t rank = 0;
  Bytes peak = 0;
  Bytes head_room = 0;  ///< what is left of the usable memory; negative: what is lacking

  bool fits() const { return head_room >= 0; }
};

ModelFit find_fit(const PlacedModel& placed, const BubbleReport& report);

/// Where 32-bit gradients do not fit: the largest smaller ones with which every rank fits. nullopt
/// where all fit already, or nothing does. Activations do not depend on it.
std::optional<Gradients> choose_smaller_gradients(const PlacedModel& placed,
                                                  const BubbleReport& report);

}  // namespace bubblescope::inline sim
