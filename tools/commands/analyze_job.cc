// Walks from traces to an analysis.
#include "tools/commands/analyze_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "sim/analysis/analyze.h"
#include "sim/analysis/conclusions.h"
#include "sim/analysis/exposed_collectives.h"
#include "sim/analysis/mean_report.h"
#include "sim/analysis/pair_times.h"
#include "sim/analysis/pauses.h"
#include "sim/analysis/replay.h"
#include "sim/analysis/serving.h"
#include "sim/ir/counted.h"
#include "sim/ir/lower_collectives.h"
#include "sim/ir/op_kinds.h"
#include "sim/predict/memory_caps.h"
#include "tools/commands/replicated_steps.h"
#include "tools/commands/trace_paths.h"
#include "tools/inputs/recognize_schedule.h"
#include "traces/measured/assemble_steps.h"
#include "traces/measured/exposed_times.h"
#include "traces/measured/growing_steps.h"
#include "traces/measured/incomplete_steps.h"
#include "traces/measured/missing_ranks.h"
#include "traces/measured/runs_of_step.h"
#include "traces/measured/trust.h"
#include "traces/measured/warmup_steps.h"
#include "traces/reports/between_steps.h"
#include "traces/reports/cause_phrases.h"
#include "traces/reports/cause_text.h"
#include "traces/reports/slowdown_doubts.h"
#include "traces/reports/step_period.h"

namespace bubblescope::tools {

namespace {

bool takes_time(const traces::MeasuredStep& step) {
  return step.timeline.start != step.timeline.end;
}

std::vector<traces::MeasuredStep> name_steps(std::vector<traces::MeasuredStep> steps) {
  if (!steps.front().missing_ranks.empty()) return steps;
  const ValidSchedule& first = steps.front().schedule;
  std::optional<std::string> name = recognize_schedule(first);
  if (!name)
    if (const auto runs = traces::count_runs_of_step(steps.front()))
      if (const std::optional<std::string> of_run = recognize_runs(first, *runs))
        name = fmt::format("{} x {}", *of_run, *runs);
  for (traces::MeasuredStep& step : steps) {
    const bool unnamed = step.schedule->name == step.timeline.source;
    if (unnamed && name && step.schedule->order == first->order) step.schedule.rename(*name);
  }
  return steps;
}

std::optional<Cause> find_late_cause(const traces::AssembledSteps& read) {
  return read.late.find_cause(numbers_of(read.steps));
}

/// The communication outside the pipeline. A collective's own time is known only if the last
/// replica to enter it has a trace.
std::vector<Cause> find_exposed_causes(const traces::AssembledSteps& read) {
  if (read.lacks_replicas) return {};
  return find_exposed_collectives(traces::find_exposed_times(read.activities, read.whole_steps));
}

/// Gives the workers the numbers that the trace has for their replicas.
traces::Iterations name_replicas(traces::Iterations iterations,
                                 const std::vector<traces::MeasuredStep>& steps) {
  const std::vector<std::int32_t> numbers = list_replicas(steps);
  for (Cause& cause : iterations.causes->causes)
    cause = with_replica_numbers(std::move(cause), numbers);
  if (iterations.slowdown)
    for (WorkerSlowdown& worker : iterations.slowdown->by_worker)
      worker.replica = numbers.at(static_cast<std::size_t>(worker.replica));
  return iterations;
}

/// Says why a simulated step shows nothing about ops with other times: what runs beside an op or a
/// message decides how long it takes. Empty for other steps.
std::string find_obstacle(const traces::MeasuredStep& step) {
  const LowerOptions& lower = step.facts.made.lower;
  if (step.facts.parts && has_pairs(*step.schedule) && lower.overlap != Overlap::kSerial)
    return "its pairs interleave by their parts";
  if (lower.waits_for_messages())
    return "its ranks wait for the messages that they post (--p2p-mode, --send-budget)";
  if (!step.facts.links.empty()) return "its messages share links (--network)";
  return {};
}

traces::TrustEvidence evidence_of(const traces::Iterations& iterations,
                                  const traces::AssembledSteps& read) {
  traces::TrustEvidence evidence;
  evidence.doubts = read.remarks.doubts;
  evidence.faults = read.remarks.faults;
  evidence.lost = read.remarks.lost;
  if (iterations.causes && iterations.causes->is_known)
    evidence.gap_shares = find_gap_shares(join_replicas(read.steps));
  evidence.lacks_ranks = !read.steps.front().missing_ranks.empty();
  for (const traces::IterationRow& row : iterations.rows)
    evidence.replay_errors.push_back(row.replay_error);
  return evidence;
}

/// Removes everything that the trace does not explain. This is the only place, so that no report,
/// drawing or file can differ.
Analysis remove_conclusions(Analysis analysis) {
  analysis.iterations = remove_conclusions(std::move(analysis.iterations));
  analysis.shown.report = remove_conclusions(std::move(analysis.shown.report));
  analysis.median = remove_conclusions(std::move(analysis.median));
  return analysis;
}

/// When each micro-batch arrives; empty where none is waited for.
std::vector<Nanos> find_arrivals(const traces::MeasuredStep& step) {
  std::vector<Nanos> arrivals;
  for (InstructionId id = 0; id < step.program.size(); ++id) {
    const Instruction& instruction = step.program.instructions[id];
    if (!is_arrival(instruction)) continue;
    arrivals.resize(static_cast<std::size_t>(step.schedule->shape.microbatches), 0);
    arrivals[static_cast<std::size_t>(instruction.op.microbatch)] = step.timeline.end[id];
  }
  return arrivals;
}

MemoryModel choose_memory_model(const traces::MeasuredStep& step, const MemoryRequest& request) {
  MemoryModel requested = make_uniform_memory(step.schedule->shape, request.memory);
  if (!step.facts.memory || request.replaces_model) {
    check_cap_unit(request.memory, false);
    return requested;
  }
  MemoryModel model = *step.facts.memory;
  check_cap_unit(request.memory, !model.activation_bytes.empty());
  model.cap = std::move(requested.cap);
  model.cap_bytes = std::move(requested.cap_bytes);
  return model;
}

/// Reports a step with the facts of its file.
BubbleReport report_step(const traces::MeasuredStep& step, const MemoryRequest& memory) {
  BubbleReport report =
      analyze(step.schedule, step.program, step.timeline, choose_memory_model(step, memory));
  for (const std::int32_t rank : step.missing_ranks)
    report.ranks[static_cast<std::size_t>(rank)].is_recorded = false;
  if (step.facts.parts)
    report = with_parts(std::move(report), step.program, step.timeline, *step.facts.parts);
  report.links = step.facts.links;
  const std::vector<Nanos> arrivals = find_arrivals(step);
  if (step.schedule->forward_only && !arrivals.empty())
    report.serving = measure_serving(step.schedule, step.program, step.timeline, arrivals);
  return report;
}

/// Finds what the steps have in common, and what makes them long.
traces::Iterations compare_steps(const traces::AssembledSteps& read,
                                 const std::vector<BubbleReport>& reports) {
  traces::Iterations iterations;
  iterations.replicas = std::ssize(list_replicas(read.steps));
  iterations.whole_steps = read.whole_steps;
  std::vector<ObservedStep> observed;
  for (const traces::MeasuredStep& step : read.steps) {
    const BubbleReport& report = reports[observed.size()];
    iterations.rows.push_back({step.label, report.makespan, report.bubble->ratio,
                               replay_error(step.program, step.timeline)});
    observed.push_back(observe(step));
  }
  const traces::MeasuredStep& first = read.steps.front();
  if (traces::is_broken(first) || !first.missing_ranks.empty() || !find_obstacle(first).empty())
    return iterations;
  iterations.stragglers = find_stragglers(observed);
  const std::vector<ReplicatedStep> replicated = join_replicas(read.steps);
  if (replicated.empty()) return iterations;
  const std::vector<std::vector<OuterActivity>> activities = activities_of(read);
  iterations.causes = find_causes(join_replicas(read.steps, read.late), activities);
  iterations.step_numbers = numbers_of(read.steps);
  std::vector<Cause>& causes = iterations.causes->causes;
  if (!iterations.causes->is_known) return iterations;
  iterations.slowdown = find_slowdown(replicated, activities);
  const std::vector<Cause> exposed = iterations.slowdown->has_whole_steps
                                         ? find_exposed_activities(*iterations.slowdown)
                                         : find_exposed_causes(read);
  causes.insert(causes.end(), exposed.begin(), exposed.end());
  if (std::optional<Cause> late = find_late_cause(read)) causes.push_back(*std::move(late));
  std::stable_sort(causes.begin(), causes.end(),
                   [](const Cause& left, const Cause& right) { return left.saves > right.saves; });
  return name_replicas(std::move(iterations), read.steps);
}

/// The flags that add what the step does besides forwards and backwards; empty where it does not.
std::string list_flags_of(const traces::MeasuredStep& step) {
  std::vector<std::string> flags;
  if (has_kind(*step.schedule, OpKind::kRecompute)) flags.emplace_back("--recompute");
  if (posts_collectives(*step.schedule)) flags.emplace_back("--fsdp");
  const UpdateOptions& update = step.facts.made.lower.update;
  if (update.reduction != GradReduction::kNone)
    flags.push_back(fmt::format("--grad-reduction {}", name_of(kGradReductions, update.reduction)));
  if (update.optimizer != OptimizerMode::kNone)
    flags.push_back(fmt::format("--optimizer {}", name_of(kOptimizerModes, update.optimizer)));
  return fmt::format("{}", fmt::join(flags, ", "));
}

/// Gives the time of recomputations to the part of a forward that the stage recomputes.
void name_recomputed_parts(std::vector<StageEntry>& stages, const Schedule& schedule) {
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    if (schedule.recompute(static_cast<std::int32_t>(stage)) == Recompute::kSelective)
      stages[stage].selective_recompute = std::exchange(stages[stage].recompute, {});
}

/// Fits costs if anything asks for them.
std::optional<JobCosts> fit_costs_of(const traces::AssembledSteps& read,
                                     const JobOptions& options) {
  if (!options.fits_costs && options.tries.schedules.empty()) return {};
  if (!read.steps.front().missing_ranks.empty()) return {};  // such steps are not trusted
  const std::vector<ReplicatedStep> replicated = traces::is_broken(read.steps.front())
                                                     ? std::vector<ReplicatedStep>{}
                                                     : join_replicas(read.steps, read.late);
  if (replicated.empty())
    throw Error(Fault::kProblem,
                "no costs can be fitted: steps are incomplete, or some lack a replica");
  if (std::none_of(read.steps.begin(), read.steps.end(), takes_time))
    throw Error(Fault::kProblem, "no costs can be fitted: no op of the trace takes any time");
  if (const std::string why = find_obstacle(read.steps.front()); !why.empty())
    throw Error(Fault::kProblem, "no costs can be fitted to this step: " + why);
  const std::int32_t stages = read.steps.front().schedule->stages_per_pipeline();
  StepsToFit job{replicated, numbers_of(read.steps), read.whole_steps, {}};
  for (const auto& [number, _] : read.late.steps) job.known_starts.insert(number);
  JobCosts costs = fit_job_costs(job, {stages, options.split_backward, options.per_microbatch});
  const Schedule& schedule = *read.steps.front().schedule;
  name_recomputed_parts(costs.fitted.table.stages, schedule);
  for (std::vector<StageEntry>& of_replica : costs.fitted.table.replicas)
    name_recomputed_parts(of_replica, schedule);
  if (const std::optional<Cause> late = find_late_cause(read)) {
    const bool begins_alone = std::get<ReplicasThatBeginLate>(late->facts).replicas.size() == 1;
    costs.notes.push_back(
        fmt::format("{} begin{} late: with other schedules as well, by as much in the mean",
                    traces::phrase_cause(*late).place, begins_alone ? "s" : ""));
  }
  if (!options.fits_costs) return costs;
  if (std::string flags = list_flags_of(read.steps.front()); !flags.empty())
    costs.notes.push_back(
        "the step does more than forwards and backwards, and so does another "
        "schedule with these costs only if 'simulate' is given " +
        flags);
  if (const Ends ends = costs.fitted.table.ends; ends != Ends::kMoreLayers)
    costs.notes.push_back(
        fmt::format("with another number of stages the first and the last count as having {}: an "
                    "estimate from their times, which \"ends\" in the file can replace",
                    summary_of(kStageEnds, ends)));
  return costs;
}

/// The slow stage that may be a slow rank instead, because one replica cannot tell them apart.
std::optional<std::int32_t> find_stage_or_rank(const traces::Iterations& iterations) {
  if (!iterations.causes || traces::has_replicas(iterations)) return {};
  for (const Cause& cause : iterations.causes->causes)
    if (const auto* const stage = std::get_if<UnequalStage>(&cause.facts))
      if (stage->factor > 1) return stage->stage;
  return {};
}

Analysis try_other_schedules(Analysis analysis, const TryOptions& options) {
  if (options.schedules.empty()) return analysis;
  CostTable table = analysis.costs->fitted.table;
  table.file = "the fitted costs";
  TryOptions wanted = options;
  wanted.by_pytorch = options.by_pytorch && analysis.shown.timeline.source == "kineto";
  TriedSchedules tried =
      try_schedules(analysis.shown.schedule, analysis.shown.made.lower, table, wanted);
  const double predicted = tried.tries.rows.front().step.mean;
  tried.tries.first_step = static_cast<std::int64_t>(analysis.costs->fitted.first_step);
  tried.tries.measured_step = analysis.costs->measured_step;
  tried.tries.fit_error = predicted / analysis.costs->measured_step - 1;
  if (std::abs(tried.tries.fit_error) > kMaxFitError)
    throw Error(Fault::kProblem,
                fmt::format("the fitted costs give the measured step {:+.0f} % off, so they say "
                            "nothing of other schedules",
                            100 * tried.tries.fit_error));
  for (const std::string& note : analysis.costs->notes) tried.tries.notes.push_back(note);
  if (const std::optional<std::int32_t> stage = find_stage_or_rank(analysis.iterations))
    tried.tries.notes.push_back(fmt::format(
        "stage {} keeps its time on whatever rank runs it; if its rank is slow instead, which one "
        "replica cannot tell, these changes do not hold",
        *stage));
  analysis.tried = std::move(tried);
  return analysis;
}

}  // namespace

traces::AssembledSteps read_steps(const std::vector<std::string>& paths, const std::string& rules,
                                  StreamTexts& streams) {
  traces::AssembledSteps read = traces::assemble_steps(read_traces(paths, rules, streams));
  for (const traces::MeasuredStep& step : read.steps)
    if (step.program.ranks != read.steps.front().program.ranks)
      throw Error(fmt::format("the traces are of {} and of {}; analyze them one by one",
                              read.steps.front().program.ranks,
                              counted(step.program.ranks, "rank")));
  read = traces::separate_incomplete_steps(std::move(read));
  read = traces::separate_unexplained_steps(
      traces::separate_warmup_steps(traces::separate_partial_steps(std::move(read))));
  if (std::optional<std::string> growing = traces::describe_growing_steps(read.steps))
    read.remarks.notes.push_back(*std::move(growing));
  return read;
}

Analysis analyze_steps(traces::AssembledSteps read, const MemoryRequest& memory,
                       const JobOptions& options) {
  std::vector<traces::MeasuredStep>& steps = read.steps = name_steps(std::move(read.steps));
  if (const std::string why = find_obstacle(steps.front()); !why.empty())
    read.remarks.notes.push_back("neither causes nor slowdown are computed: " + why);
  std::vector<BubbleReport> reports;
  for (const traces::MeasuredStep& step : steps) reports.push_back(report_step(step, memory));
  traces::Iterations iterations = compare_steps(read, reports);
  if (std::optional<std::string> doubt = traces::doubt_replay(iterations, find_late_cause(read))) {
    read.remarks.doubts.insert(read.remarks.doubts.begin(), *std::move(doubt));
    iterations.slowdown.reset();
    iterations.causes.reset();
  }
  std::optional<JobCosts> costs = fit_costs_of(read, options);
  const BubbleReport mean = average_reports(reports);
  iterations.trust = traces::judge_trust(mean, evidence_of(iterations, read));
  if (!read.evaluated_within) {  // evaluations run between the training of two steps
    iterations.between_steps = traces::measure_between_steps(steps);
    iterations.step_period = traces::measure_step_period(steps);
  }
  iterations.lacks_replicas = read.lacks_replicas;
  iterations.lacks_ranks = !steps.front().missing_ranks.empty();
  iterations.left_out = std::move(read.remarks.left_out);
  iterations.notes = std::move(read.remarks.notes);
  iterations = traces::with_slowdown_doubt(std::move(iterations));
  if (iterations.causes && iterations.trust.verdict != traces::Verdict::kNone)
    if (std::optional<std::string> many = traces::describe_many_long_ops(*iterations.causes))
      iterations.notes.push_back(*std::move(many));
  const std::size_t middle = find_median_report(reports);
  traces::MeasuredStep& median = steps[middle];
  Analysis analysis{{std::move(median.schedule)}, std::move(iterations)};
  analysis.median = reports[middle];
  analysis.median_label = median.label;
  analysis.shown.models.memory = reports[middle].memory;
  analysis.shown.made = median.facts.made;
  analysis.shown.report = mean;
  analysis.shown.program = std::move(median.program);
  analysis.shown.timeline = std::move(median.timeline);
  if (!median.missing_ranks.empty())
    analysis.shown.timeline.breakdown = traces::describe_stand_ins(median.missing_ranks);
  if (!analysis.is_trusted()) return remove_conclusions(std::move(analysis));
  analysis.costs = std::move(costs);
  if (options.fits_costs)
    analysis.costs = with_prediction(
        *std::move(analysis.costs), analysis.shown.schedule, analysis.median.makespan,
        options.per_microbatch ? PredictionNote::kAlways : PredictionNote::kIfOff);
  return try_other_schedules(std::move(analysis), options.tries);
}

}  // namespace bubblescope::tools
