// Decides which steps are plain.
#include "sim/predict/predict_plain.h"

#include <utility>
#include <variant>

#include "sim/analysis/plain_step.h"
#include "sim/predict/models.h"

namespace bubblescope::inline sim {

namespace {

bool is_brief(Detail detail) {
  return detail == Detail::kBrief || detail == Detail::kBriefWithBound;
}

/// Whether nothing but ops and messages takes time, and no message is shared or posted.
bool is_plain(const Config& config) {
  const auto* const uniform = std::get_if<UniformCosts>(&config.costs);
  return is_brief(config.detail) && uniform != nullptr && !uniform->network &&
         !config.lower.waits_for_messages() && !config.lower.update.any() && !config.moves.any() &&
         config.injections.empty() && config.arrivals.empty() && !config.policy &&
         config.slow_ranks.empty();
}

}  // namespace

std::optional<BubbleReport> predict_plain_step(const Schedule& schedule, const Config& config) {
  if (!is_plain(config) || !has_plain_frame(schedule)) return {};
  const Models models = find_models(schedule, config);
  return report_plain_step(
      schedule, models.costs, models.memory,
      config.detail == Detail::kBriefWithBound ? LowerBound::kFind : LowerBound::kSkip);
}

}  // namespace bubblescope::inline sim
