// Collects what --fail-if can name of a predicted step.
#include "tools/commands/step_metrics.h"

#include <algorithm>
#include <optional>

#include "tools/inputs/model_report.h"
#include "tools/print.h"

namespace bubblescope::tools {

Metrics collect_step_metrics(const TimedStep& step) {
  Metrics metrics = collect_metrics(step.report);
  if (step.models.placed) metrics.merge(model_metrics(*step.models.placed, step.report));
  if (const std::optional<StepTimes>& times = step.report.noise) {
    metrics["noise_p50_ns"] = static_cast<double>(times->p50);
    metrics["noise_p95_ns"] = static_cast<double>(times->p95);
    metrics["noise_mean_ns"] = static_cast<double>(times->mean);
    metrics["noise_p5_ns"] = static_cast<double>(times->p5);
    metrics["noise_min_ns"] = static_cast<double>(times->shortest);
    metrics["noise_max_ns"] = static_cast<double>(times->longest);
  }
  if (const std::optional<ServingReport>& serving = step.report.serving) {
    metrics["time_to_first_token_p50_ns"] = static_cast<double>(serving->first_token_p50);
    metrics["time_to_first_token_p95_ns"] = static_cast<double>(serving->first_token_p95);
    metrics["time_to_first_token_mean_ns"] = serving->first_token_mean;
    metrics["time_to_first_token_max_ns"] = static_cast<double>(serving->first_token_max);
    metrics["microbatches_per_second"] = serving->microbatches_per_second;
  }
  return metrics;
}

void warn_of_noise(const BubbleReport& report, const std::vector<Condition>& conditions) {
  const auto is_of_noise = [](const Condition& condition) {
    return condition.metric.starts_with("noise_");
  };
  if (report.noise && !std::all_of(conditions.begin(), conditions.end(), is_of_noise))
    print_message(
        "bubblescope: --fail-if looks at the step without noise; noise_p50_ns, noise_p95_ns and "
        "noise_mean_ns are with it\n");
}

}  // namespace bubblescope::tools
