// Jobs as rows of numbers: --fail-if and the csv of --each.
#pragma once

#include <string>
#include <vector>

#include "tools/commands/analyze_job.h"
#include "tools/commands/gate.h"
#include "traces/measured/timer_log.h"

namespace bubblescope::tools {

/// The metrics of the report, and: step_ns, replay_error, slowdown (S), and for each kind of cause
/// the seconds that removing the largest of that kind saves per step: cause_worker_s,
/// cause_stage_s, cause_sequence_lengths_s, cause_communication_s, cause_launch_s, cause_pause_s,
/// cause_drift_s. Without conclusions, only what was observed.
Metrics collect_job_metrics(const Analysis& analysis);

/// Reports the conditions that hold on stderr. Steps that are not trusted fail every gate.
bool fails_gate(const Analysis& analysis, const std::vector<Condition>& gate);

/// The same for a log of timers, which fails every gate.
bool fails_gate(const traces::TimerLog& log, const std::vector<Condition>& gate);

/// The csv of several jobs:
///   job,schedule,pp,microbatches,iterations,step_ns,makespan_ns,bubble_ratio,replay_error,trust,
///   slowdown,cause,where,saves_ns,problem
/// Fields are blank where nothing is known; a job that cannot be read has only a problem, and a log
/// of timers only the time of an iteration and why there is no more.
std::string write_job_header();
std::string write_job_row(const std::string& job, const Analysis& analysis);
std::string write_log_row(const std::string& job, const traces::TimerLog& log);
std::string write_problem_row(const std::string& job, const std::string& problem);

}  // namespace bubblescope::tools
