// Adds what lies outside the pipeline to fitted costs.
#include "tools/commands/job_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/analysis/coupled_replay.h"
#include "sim/predict/predict.h"
#include "traces/costs/cost_file_writer.h"
#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::tools {

namespace {

/// The mean of the whole steps with these numbers; nullopt without any.
std::optional<double> mean_whole(const std::vector<traces::WholeStep>& steps,
                                 std::span<const std::int64_t> numbers) {
  std::vector<double> times;
  for (const traces::WholeStep& step : steps)
    if (std::binary_search(numbers.begin(), numbers.end(), step.step))
      times.push_back(static_cast<double>(step.whole));
  if (times.empty()) return {};
  return mean_of(times);
}

/// The mean of the longest measured pipelines.
double mean_pipeline(std::span<const ReplicatedStep> steps) {
  std::vector<double> times;
  for (const ReplicatedStep& step : steps) {
    Nanos longest = 0;
    for (const ObservedStep& replica : step)
      longest = std::max(longest, compute_makespan(replica.timeline));
    times.push_back(static_cast<double>(longest));
  }
  return mean_of(times);
}

std::string describe_drift(const FittedCosts& fitted, std::size_t steps) {
  return fmt::format(
      "the first {} are left out of the costs: {}ops take {:+.1f} % from then on, which is more "
      "than "
      "steps differ otherwise; the costs are those of the last {}",
      traces::counted(static_cast<std::int64_t>(fitted.first_step), "step"),
      fitted.drift->workers.empty()       ? ""
      : fitted.drift->workers.size() == 1 ? "one rank's "
                                          : "some ranks' ",
      100 * fitted.drift->change,
      traces::counted(static_cast<std::int64_t>(steps - fitted.first_step), "step"));
}

}  // namespace

JobCosts fit_job_costs(std::span<const ReplicatedStep> steps,
                       const std::vector<std::int64_t>& numbers,
                       const std::vector<traces::WholeStep>& whole_steps,
                       const FitOptions& options) {
  JobCosts costs{fit_costs(steps, options)};
  FittedCosts& fitted = costs.fitted;
  const double pipeline = mean_pipeline(steps.subspan(fitted.first_step));
  costs.measured_step =
      mean_whole(whole_steps, std::span<const std::int64_t>(numbers).subspan(fitted.first_step))
          .value_or(pipeline);
  fitted.table.outside_pipeline = std::max<Nanos>(0, std::llround(costs.measured_step - pipeline));
  costs.notes = fitted.notes;
  if (fitted.drift) costs.notes.push_back(describe_drift(fitted, steps.size()));
  return costs;
}

JobCosts with_prediction(JobCosts costs, const ValidSchedule& measured, Nanos median,
                         PredictionNote note) {
  const bool always = note == PredictionNote::kAlways;
  if (!always && !costs.fitted.table.replicas.empty()) return costs;
  CostTable table = costs.fitted.table;
  table.outside_pipeline = 0;
  Config config;
  config.costs = std::move(table);
  const BubbleReport report = predict(measured, config).report;
  const Nanos predicted = report.noise ? std::llround(report.noise->mean) : report.makespan;
  const double change = static_cast<double>(predicted) / static_cast<double>(median) - 1;
  const bool is_off = std::abs(change) > kMaxFitError;
  if (!always && !is_off) return costs;
  costs.notes.push_back(fmt::format(
      "with these costs the measured schedule takes {}; its median iteration took {} ({:+.1f} %){}",
      traces::format_time(predicted), traces::format_time(median), 100 * change,
      is_off ? ": it depends on something that they lack, such as messages that share a network or "
               "wait for each other, and so do other schedules"
             : ""));
  return costs;
}

std::string write_job_costs(const JobCosts& costs, const std::string& source, double replay_error) {
  return traces::write_cost_file(costs.fitted.table, [&](traces::JsonWriter& json) {
    json.begin_object().member("source", source);
    json.member("step_ns", std::llround(costs.measured_step));
    json.key("replay_error").fixed(replay_error, 6).array("notes", costs.notes).end_object();
  });
}

}  // namespace bubblescope::tools
