// Compares peaks with the memory that a device leaves to a program.
#include "sim/predict/model_fit.h"

#include <algorithm>
#include <cmath>

#include "sim/analysis/memory_curve.h"
#include "sim/model/stage_states.h"

namespace bubblescope::inline sim {

namespace {

Bytes peak_of(const PlacedModel& placed, const BubbleReport& report, std::size_t rank) {
  return report.ranks[rank].peak.bytes.value_or(placed.step.states[rank].total());
}

/// The bytes that smaller gradients save, of those of 32 bits.
Bytes saved_by(Gradients gradients, const PlacedModel& placed, std::size_t rank) {
  Parallelism smaller = placed.on.parallel;
  const ParameterBytes full = count_state_bytes(smaller);
  smaller.gradients = gradients;
  const ParameterBytes left = count_state_bytes(smaller);
  const StateBytes& states = placed.step.states[rank];
  return std::llround(static_cast<double>(states.gradients) * (1 - left.gradient / full.gradient) +
                      static_cast<double>(states.optimizer) *
                          (1 - left.optimizer / full.optimizer));
}

}  // namespace

ModelFit find_fit(const PlacedModel& placed, const BubbleReport& report) {
  const auto fit_of = [&](std::size_t rank) -> ModelFit {
    const Bytes peak = peak_of(placed, report, rank);
    return {rank, peak, placed.on.usable_memory(static_cast<std::int32_t>(rank)) - peak};
  };
  ModelFit fit = fit_of(0);
  for (std::size_t rank = 1; rank < report.ranks.size(); ++rank)
    if (const ModelFit next = fit_of(rank); next.head_room < fit.head_room) fit = next;
  return fit;
}

BubbleReport report_peaks(const ValidSchedule& schedule, const Program& program,
                          const Timeline& timeline, const MemoryModel& memory) {
  BubbleReport peaks;
  for (const Peak& peak : find_peaks(schedule, program, timeline, memory))
    peaks.ranks.emplace_back().peak = peak;
  return peaks;
}

std::optional<Gradients> choose_smaller_gradients(const PlacedModel& placed,
                                                  const BubbleReport& report) {
  if (placed.on.parallel.gradients != Gradients::kFp32 || find_fit(placed, report).fits())
    return {};
  for (const Gradients smaller : kTriedGradients) {
    bool fits = true;
    for (std::size_t rank = 0; rank < report.ranks.size() && fits; ++rank)
      fits = peak_of(placed, report, rank) - saved_by(smaller, placed, rank) <=
             placed.on.usable_memory(static_cast<std::int32_t>(rank));
    if (fits) return smaller;
  }
  return {};
}

}  // namespace bubblescope::inline sim
