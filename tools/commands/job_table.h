// Jobs as rows of numbers: --fail-if and the csv of --each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/commands/analyze_job.h"
#include "tools/commands/gate.h"
#include "traces/files/job_summary.h"
#include "traces/measured/timer_log.h"

namespace bubblescope::tools {

/// The metrics of the report, and: step_ns, replay_error, slowdown (S), and for each kind of cause
/// the seconds that removing the largest of that kind saves per step: cause_worker_s,
/// cause_stage_s, cause_sequence_lengths_s, cause_communication_s, cause_launch_s, cause_pause_s,
/// cause_drift_s, cause_slow_steps_s, cause_variation_s, cause_late_replica_s. Without conclusions,
/// only what was observed.
Metrics collect_job_metrics(const Analysis& analysis);

/// Those of them that are not of the report. A number that is not known is NaN, so that its name
/// is.
Metrics collect_summary_metrics(const traces::JobSummary& job);

/// The first condition on a number that is not known; null if there is none.
const Condition* find_unknown(const std::vector<Condition>& gate, const Metrics& metrics);

/// The steps of jobs that are compared over time, such as the nights of a week.
class StepTrend {
 public:
  /// The change of a job's step since the first one that is known, as a fraction: 0.05 is 5 %
  /// longer; nullopt if it is not known.
  std::optional<double> add(std::optional<double> step_ns);

 private:
  std::optional<double> first_;
};

/// One of several jobs.
struct GatedJob {
  std::string name = {};              ///< for messages; empty: the only one
  std::optional<double> change = {};  ///< step_ns_change
};

/// Reports the conditions that hold on stderr. Steps that are not trusted fail every gate.
bool fails_gate(const Analysis& analysis, const std::vector<Condition>& gate,
                const GatedJob& job = {});

/// Reports the conditions for a log of timers, which fails every gate.
bool fails_gate(const traces::TimerLog& log, const std::vector<Condition>& gate);

/// The csv of several jobs:
///   job,schedule,pp,microbatches,iterations,step_ns,makespan_ns,bubble_ratio,replay_error,trust,
///   slowdown,cause,where,saves_ns,problem,step_ns_change
/// Fields are blank where nothing is known; a job that cannot be read has only a problem, and a log
/// of timers only the time of an iteration and why there is no more.
std::string write_job_header();
std::string write_job_row(const std::string& job, const Analysis& analysis,
                          std::optional<double> change);
std::string write_log_row(const std::string& job, const traces::TimerLog& log,
                          std::optional<double> change);
std::string write_problem_row(const std::string& job, const std::string& problem);

}  // namespace bubblescope::tools
