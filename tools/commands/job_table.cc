// Collects numbers of analyzed jobs.
#include "tools/commands/job_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "sim/analysis/conclusions.h"
#include "tools/errors.h"
#include "tools/print.h"
#include "traces/files/csv_string.h"
#include "traces/reports/cause_phrases.h"
#include "traces/reports/cause_text.h"
#include "traces/reports/slowdown_doubts.h"
#include "traces/reports/summarize_job.h"

namespace bubblescope::tools {

namespace {

/// The largest cause; null where none is known.
const Cause* largest_cause(const Analysis& analysis) {
  const auto& causes = analysis.iterations.causes;
  return causes && causes->is_known && !causes->causes.empty() ? &causes->causes.front() : nullptr;
}

/// Why S is below 1; empty where it is not, or where there is none.
std::string explain_low_slowdown(const Analysis& analysis) {
  if (!analysis.iterations.slowdown) return {};
  return traces::explain_low_slowdown(*analysis.iterations.slowdown).value_or("");
}

}  // namespace

Metrics collect_summary_metrics(const traces::JobSummary& job) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  Metrics metrics{{"step_ns", job.step ? static_cast<double>(*job.step) : kUnknown},
                  {"replay_error", job.replay_error},
                  {"slowdown", job.slowdown.value_or(kUnknown)}};
  const auto name_of = [](std::string_view cause) { return fmt::format("cause_{}_s", cause); };
  for (int kind = 0; kind <= static_cast<int>(CauseKind::kVariation); ++kind)
    metrics[name_of(traces::cause_code(static_cast<CauseKind>(kind)))] = job.causes ? 0 : kUnknown;
  if (!job.causes) return metrics;
  for (const traces::SavedCause& cause : *job.causes) {
    double& seconds = metrics[name_of(cause.cause)];
    seconds = std::max(seconds, static_cast<double>(cause.saves) / 1e9);
  }
  if (job.lacks_replicas) metrics["cause_worker_s"] = metrics["cause_late_replica_s"] = kUnknown;
  return metrics;
}

Metrics collect_job_metrics(const Analysis& analysis) {
  Metrics metrics = collect_metrics(analysis.shown.report);
  metrics.merge(collect_summary_metrics(traces::summarize_job(analysis.iterations)));
  return metrics;
}

const Condition* find_unknown(const std::vector<Condition>& gate, const Metrics& metrics) {
  for (const Condition& condition : gate)
    if (const auto found = metrics.find(condition.metric);
        found != metrics.end() && std::isnan(found->second))
      return &condition;
  return nullptr;
}

std::optional<double> StepTrend::add(std::optional<double> step_ns) {
  if (!step_ns) return {};
  if (!first_) first_ = step_ns;
  return *first_ == 0 ? 0 : *step_ns / *first_ - 1;
}

bool fails_gate(const Analysis& analysis, const std::vector<Condition>& gate, const GatedJob& job) {
  if (gate.empty()) return false;
  Metrics metrics = collect_job_metrics(analysis);
  if (job.change) metrics["step_ns_change"] = *job.change;
  const auto fail = [&](const std::string& why) {
    print_error(fmt::format("{}{}--fail-if cannot be evaluated: {}", job.name,
                            job.name.empty() ? "" : ": ", why));
    return true;
  };
  if (!analysis.is_trusted()) return fail(analysis.iterations.trust.why.front());
  if (const Condition* const unknown = find_unknown(gate, metrics))
    return fail(unknown->metric + " is not known of these steps");
  const auto names_slowdown = [](const Condition& one) { return one.metric == "slowdown"; };
  if (std::any_of(gate.begin(), gate.end(), names_slowdown))
    if (const std::string why = explain_low_slowdown(analysis); !why.empty())
      print_message("bubblescope: {}{}{}\n", job.name, job.name.empty() ? "" : ": ", why);
  return report_failures(gate, metrics, job.name);
}

bool fails_gate(const traces::TimerLog& log, const std::vector<Condition>& gate) {
  if (gate.empty()) return false;
  print_error("--fail-if cannot be evaluated: " + log.file +
              " is a log of timers, which has no bubble");
  return true;
}

std::string write_job_header() {
  return "job,schedule,pp,microbatches,iterations,step_ns,makespan_ns,bubble_ratio,replay_error,"
         "trust,slowdown,cause,where,saves_ns,problem,step_ns_change\n";
}

std::string write_job_row(const std::string& job, const Analysis& analysis,
                          std::optional<double> change) {
  const BubbleReport& report = analysis.shown.report;
  const traces::Iterations& iterations = analysis.iterations;
  const Cause* const cause = largest_cause(analysis);
  const std::optional<Nanos> step = traces::find_known_step(iterations);
  return fmt::format(
      "{},{},{},{},{},{},{},{},{:.6f},{},{},{},{},{},{},{}\n", traces::csv_field(job),
      traces::csv_field(report.schedule), report.shape.ranks, report.shape.microbatches,
      iterations.rows.size(), step ? fmt::format("{}", *step) : "", report.makespan,
      is_conclusive(report) ? fmt::format("{:.6f}", report.bubble->ratio) : "",
      iterations.trust.replay_error, to_string(iterations.trust.verdict),
      iterations.slowdown ? fmt::format("{:.6f}", iterations.slowdown->slowdown) : "",
      cause == nullptr ? "" : traces::cause_code(cause->kind()),
      cause == nullptr ? "" : traces::csv_field(traces::phrase_cause(*cause).place),
      cause == nullptr ? "" : fmt::format("{}", cause->saves),
      traces::csv_field(explain_low_slowdown(analysis)),
      change ? fmt::format("{:.6f}", *change) : "");
}

std::string write_log_row(const std::string& job, const traces::TimerLog& log,
                          std::optional<double> change) {
  const std::string step =
      log.iteration_ms ? fmt::format("{}", std::llround(*log.iteration_ms * 1e6)) : "";
  std::string problem = log.iteration_ms
                            ? "a log of timers has no more than the time of an iteration"
                            : "a log of timers without the time of an iteration";
  for (const std::string& sentence : traces::describe_left_out(log)) problem += "; " + sentence;
  return fmt::format("{},,,,,{},,,,,,,,,{},{}\n", traces::csv_field(job), step,
                     traces::csv_field(problem), change ? fmt::format("{:.6f}", *change) : "");
}

std::string write_problem_row(const std::string& job, const std::string& problem) {
  return fmt::format("{},,,,,,,,,,,,,,{},\n", traces::csv_field(job), traces::csv_field(problem));
}

}  // namespace bubblescope::tools
