// Adds what lies outside the pipeline to fitted costs.
#include "tools/commands/job_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/analysis/mean.h"
#include "sim/predict/predict.h"
#include "traces/costs/cost_file_writer.h"
#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::tools {

namespace {

/// Returns the mean of the whole steps with these numbers; nullopt without any.
std::optional<double> mean_whole(const std::vector<traces::WholeStep>& steps,
                                 std::span<const std::int64_t> numbers) {
  std::vector<double> times;
  for (const traces::WholeStep& step : steps)
    if (std::binary_search(numbers.begin(), numbers.end(), step.step))
      times.push_back(static_cast<double>(step.whole));
  if (times.empty()) return {};
  return mean_of(times);
}

/// By how much later than the earliest replica each begins in the mean; empty: all begin together.
std::vector<Nanos> mean_late_starts(const StepsToFit& job, std::size_t first_step) {
  std::vector<Nanos> late(job.steps.front().size(), 0);
  Nanos known = 0;
  for (std::size_t at = first_step; at < job.steps.size(); ++at) {
    if (!job.known_starts.contains(job.numbers[at])) continue;
    ++known;
    for (std::size_t replica = 0; replica < late.size(); ++replica)
      late[replica] += job.steps[at][replica].delay;
  }
  if (known == 0) return {};
  const Nanos earliest = *std::min_element(late.begin(), late.end());
  for (Nanos& one : late) one = (one - earliest) / known;
  if (*std::max_element(late.begin(), late.end()) == 0) return {};
  return late;
}

/// The mean time from the start of the earliest replica to the end of the last measured pipeline,
/// if replicas begin as late as `table` has it.
double mean_pipeline(std::span<const ReplicatedStep> steps, const CostTable& table) {
  std::vector<double> times;
  for (const ReplicatedStep& step : steps) {
    Nanos longest = 0;
    for (std::size_t replica = 0; replica < step.size(); ++replica)
      longest =
          std::max(longest, table.late_start(replica) + compute_makespan(step[replica].timeline));
    times.push_back(static_cast<double>(longest));
  }
  return mean_of(times);
}

std::string describe_drift(const FittedCosts& fitted, std::size_t steps) {
  return fmt::format(
      "the first {} are left out of the costs: {}ops take {:.1f} % {} from then on, which is more "
      "than steps differ otherwise; the costs are those of the last {}",
      counted(static_cast<std::int64_t>(fitted.first_step), "step"),
      fitted.drift->workers.empty()       ? ""
      : fitted.drift->workers.size() == 1 ? "one rank's "
                                          : "some ranks' ",
      100 * std::abs(fitted.drift->change), fitted.drift->change < 0 ? "less time" : "longer",
      counted(static_cast<std::int64_t>(steps - fitted.first_step), "step"));
}

}  // namespace

JobCosts fit_job_costs(const StepsToFit& job, const FitOptions& options) {
  JobCosts costs{fit_costs(job.steps, options)};
  FittedCosts& fitted = costs.fitted;
  if (!fitted.table.replicas.empty())
    fitted.table.late_starts = mean_late_starts(job, fitted.first_step);
  const double pipeline = mean_pipeline(job.steps.subspan(fitted.first_step), fitted.table);
  costs.measured_step =
      mean_whole(job.whole_steps,
                 std::span<const std::int64_t>(job.numbers).subspan(fitted.first_step))
          .value_or(pipeline);
  fitted.table.outside_pipeline = std::max<Nanos>(0, std::llround(costs.measured_step - pipeline));
  costs.notes = fitted.notes;
  if (fitted.drift) costs.notes.push_back(describe_drift(fitted, job.steps.size()));
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
  if (!always && std::abs(change) <= kMaxUnstatedError) return costs;
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
