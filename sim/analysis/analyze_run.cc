// Adds the results of further simulations to a report.
#include "sim/analysis/analyze_run.h"

#include <optional>
#include <utility>

#include "sim/analysis/analyze.h"
#include "sim/analysis/link_use.h"
#include "sim/analysis/noisy_steps.h"
#include "sim/analysis/pair_times.h"
#include "sim/analysis/sensitivity.h"

namespace bubblescope::inline sim {

BubbleReport analyze_run(const SimulatedStep& step, const Scenarios& scenarios, Slack slack) {
  BubbleReport report = analyze(step.schedule, step.program, step.run.timeline, step.memory, slack);
  if (step.timing.traffic)
    report.links = account_for_links(*step.timing.traffic, step.run.uses, report.makespan);
  const Timeline& timeline = step.run.timeline;
  if (!step.costs.parts.empty())
    report = with_parts(std::move(report), step.program, timeline,
                        account_for_parts(step.program, timeline, step.costs.parts));
  if (scenarios.noise.is_random())
    report.noise =
        simulate_noise(step.program, step.timing, step.costs, scenarios.noise, scenarios.count);
  if (scenarios.sensitivity) {
    std::optional<PairTimes> pairs;
    if (report.parts) pairs.emplace(step.program, timeline, *report.parts);
    report.sensitivity = find_sensitivity(step.program, step.timing, pairs ? &*pairs : nullptr);
  }
  return report;
}

}  // namespace bubblescope::inline sim
