// Checks whether a model's ranks fit into their devices, and with which gradients.
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
  Bytes head_room = 0;  ///< usable memory that is left; negative if some is missing

  bool fits() const { return head_room >= 0; }
};

ModelFit find_fit(const PlacedModel& placed, const BubbleReport& report);

/// The same if gradients and Adam had the bytes of another choice; activations do not depend on it.
ModelFit find_fit_with(Gradients gradients, const PlacedModel& placed, const BubbleReport& report);

/// Returns a report that has only the ranks' peaks.
BubbleReport report_peaks(const ValidSchedule& schedule, const Program& program,
                          const Timeline& timeline, const MemoryModel& memory);

/// If 32-bit gradients do not fit, returns the largest smaller ones with which every rank fits.
/// nullopt if all ranks fit already or no gradients are small enough. Activations do not depend on
/// this choice.
std::optional<Gradients> choose_smaller_gradients(const PlacedModel& placed,
                                                  const BubbleReport& report);

/// Whether predict() would choose smaller gradients after this report, and so another step.
bool would_shrink_gradients(const Config& config, const Models& models, const BubbleReport& report);

}  // namespace bubblescope::inline sim
