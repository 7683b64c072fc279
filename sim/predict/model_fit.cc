// Compares peaks with the memory that a device leaves to a program.
#include "sim/predict/model_fit.h"

#include <cmath>

#include "sim/analysis/memory_curve.h"
#include "sim/model/stage_states.h"

namespace bubblescope::inline sim {

namespace {

Bytes peak_of(const PlacedModel& placed, const BubbleReport& report, std::size_t rank) {
  return report.ranks[rank].peak.bytes.value_or(placed.step.states[rank].total());
}

/// The bytes that a rank's states grow by with other gradients; below zero if they shrink.
Bytes growth_of(const StateBytes& states, Parallelism parallel, Gradients gradients) {
  const ParameterBytes now = count_state_bytes(parallel);
  parallel.gradients = gradients;
  const ParameterBytes then = count_state_bytes(parallel);
  return std::llround(static_cast<double>(states.gradients) * (then.gradient / now.gradient - 1) +
                      static_cast<double>(states.optimizer) * (then.optimizer / now.optimizer - 1));
}

}  // namespace

ModelFit find_fit_with(Gradients gradients, const PlacedModel& placed, const BubbleReport& report) {
  const auto fit_of = [&](std::size_t rank) -> ModelFit {
    const Bytes peak = peak_of(placed, report, rank) +
                       growth_of(placed.step.states[rank], placed.on.parallel, gradients);
    return {rank, peak, placed.on.usable_memory(static_cast<std::int32_t>(rank)) - peak};
  };
  ModelFit fit = fit_of(0);
  for (std::size_t rank = 1; rank < report.ranks.size(); ++rank)
    if (const ModelFit next = fit_of(rank); next.head_room < fit.head_room) fit = next;
  return fit;
}

ModelFit find_fit(const PlacedModel& placed, const BubbleReport& report) {
  return find_fit_with(placed.on.parallel.gradients, placed, report);
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
  for (const Gradients smaller : kTriedGradients)
    if (find_fit_with(smaller, placed, report).fits()) return smaller;
  return {};
}

bool would_shrink_gradients(const Config& config, const Models& models,
                            const BubbleReport& report) {
  const auto* const model = std::get_if<ModelCosts>(&config.costs);
  return model != nullptr && model->may_shrink_gradients &&
         choose_smaller_gradients(*models.placed, report).has_value();
}

}  // namespace bubblescope::inline sim
