// Decides which steps are plain.
#include "sim/predict/predict_plain.h"

#include <utility>
#include <variant>

#include "sim/analysis/plain_stages.h"
#include "sim/analysis/plain_step.h"
#include "sim/analysis/plain_timeline.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/model_fit.h"
#include "sim/predict/models.h"

namespace bubblescope::inline sim {

namespace {

bool is_brief(Detail detail) {
  return detail == Detail::kBrief || detail == Detail::kBriefWithBound;
}

/// Whether nothing but ops and messages takes time, and no message is posted.
bool is_plain(const Config& config, const LowerOptions& lower) {
  return !lower.waits_for_messages() && !lower.update.any() && !config.moves.any() &&
         config.injections.empty() && config.arrivals.empty() && !config.policy &&
         config.slow_ranks.empty();
}

/// Whether costs are the same for all stages and micro-batches, and no message is shared.
bool is_plain_and_uniform(const Config& config) {
  const auto* const uniform = std::get_if<UniformCosts>(&config.costs);
  return is_brief(config.detail) && uniform != nullptr && !uniform->network &&
         is_plain(config, config.lower);
}

/// Whether one step is all that there is, and all that is reported.
bool is_one_step(const Config& config) {
  const auto* const table = std::get_if<CostTable>(&config.costs);
  const bool is_alone = table == nullptr ||
                        (!table->noise && table->replicas.empty() && table->outside_pipeline == 0);
  return is_alone && config.detail == Detail::kFull && config.slack == Slack::kSkip &&
         !config.scenarios.noise.is_random() && !config.scenarios.sensitivity;
}

}  // namespace

std::optional<BubbleReport> predict_plain_step(const Schedule& schedule, const Config& config) {
  if (!is_plain_and_uniform(config) || !has_plain_frame(schedule)) return {};
  const Models models = find_models(schedule, config);
  return report_plain_step(
      schedule, models.costs, models.memory,
      config.detail == Detail::kBriefWithBound ? LowerBound::kFind : LowerBound::kSkip);
}

std::variant<Prediction, ValidSchedule> predict_plain_report(ValidSchedule schedule,
                                                             const Config& config,
                                                             const ChooseRanks& choose_ranks) {
  if (!is_one_step(config) || !has_plain_frame(schedule) ||
      !is_plain(config, choose_lowering(schedule, config)))
    return schedule;
  Models models = find_models(schedule, config);
  if (models.cluster || models.contention) return schedule;
  auto details = detail_plain_step(schedule, models.costs, models.memory, choose_ranks);
  if (!details || would_shrink_gradients(config, models, details->report)) return schedule;
  Prediction step{{std::move(models)}, std::move(schedule), std::move(details->program)};
  step.timeline = std::move(details->timeline);
  step.report = std::move(details->report);
  step.notes = find_notes(step.schedule, step.models.memory, config);
  return step;
}

}  // namespace bubblescope::inline sim
