// Implements analyze, which reports measured steps like predicted ones and names stragglers.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/analysis/analyze.h"
#include "sim/analysis/conclusions.h"
#include "sim/analysis/mean_report.h"
#include "sim/analysis/replay.h"
#include "tools/commands/exports.h"
#include "tools/commands/gate.h"
#include "tools/commands/measure.h"
#include "tools/commands/recognize_schedule.h"
#include "tools/commands/trace_paths.h"
#include "tools/flags/command_flags.h"
#include "tools/inputs/predict.h"
#include "tools/print.h"
#include "tools/terminal.h"
#include "traces/measured/assemble_steps.h"
#include "traces/measured/trust.h"
#include "traces/reports/iterations.h"
#include "traces/reports/report_csv.h"
#include "traces/reports/report_json.h"
#include "traces/reports/text_report.h"
#include "traces/text/time_axis.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kAnalyzeExample =
    "example: where do the bubbles of a real run come from?\n"
    "  bubblescope analyze rank0.json.gz rank1.json.gz rank2.json.gz rank3.json.gz\n"
    "  bubblescope simulate zb-h1 --pp 4 -m 8 --trace step.json && bubblescope analyze step.json\n"
    "TRACE is Chrome json (ours; StragglerAnalysis'; PyTorch's profiler, whose ops are named "
    "PP:0F3\n"
    "as PyTorch's pipelining does), an Nsight Systems sqlite export with such NVTX ranges, or "
    "what\n"
    "--save or --timeline wrote. Several files are the ranks of one pipeline, or more "
    "iterations.\n";

/// Everything about the measured steps: the mean report, and the representative step.
struct Analysis {
  TimedStep shown;
  traces::Iterations iterations = {};
  BubbleReport median = {};       ///< report of the drawn step
  std::string median_label = {};  ///< "dp 0 step 23"
};

bool is_broken(const traces::MeasuredStep& step) { return !step.timeline.breakdown.empty(); }

/// The steps in the files, and notes on what was left out or corrected.
struct ReadSteps {
  std::vector<traces::MeasuredStep> steps;
  std::vector<traces::WholeStep> whole_steps;
  std::vector<std::string> left_out;
  std::vector<std::string> notes;
  std::vector<std::string> doubts;
  std::vector<std::string> faults;
};

/// Leaves out incomplete steps. If no step is complete, marks them all instead.
ReadSteps separate_incomplete_steps(ReadSteps read) {
  std::vector<traces::MeasuredStep>& steps = read.steps;
  const auto broken = std::find_if(steps.begin(), steps.end(), is_broken);
  if (broken == steps.end()) return read;
  const std::string why = broken->timeline.breakdown;
  const auto count = std::count_if(steps.begin(), steps.end(), is_broken);
  if (count < std::ssize(steps)) {
    read.notes.push_back(fmt::format("{} incomplete step(s) left out: {}", count, why));
    std::erase_if(steps, is_broken);
  } else {
    read.notes.push_back("this step did not complete: " + why +
                         "; instructions that never started are at its end, with no length");
  }
  return read;
}

ReadSteps read_steps(const std::vector<std::string>& paths) {
  auto [trace, left_out] = read_traces(paths);
  std::vector<traces::MeasuredStep> steps = traces::assemble_steps(trace);
  for (const traces::MeasuredStep& step : steps)
    if (step.program.ranks != steps.front().program.ranks)
      throw Error(fmt::format("the traces are of {} and of {} ranks; analyze them one by one",
                              steps.front().program.ranks, step.program.ranks));
  return separate_incomplete_steps({std::move(steps), std::move(trace.whole_steps),
                                    std::move(left_out), std::move(trace.notes),
                                    std::move(trace.doubts), std::move(trace.faults)});
}

void name_steps(std::vector<traces::MeasuredStep>& steps) {
  const std::optional<std::string> name = recognize_schedule(steps.front().schedule);
  for (traces::MeasuredStep& step : steps) {
    const bool unnamed = step.schedule->name == step.timeline.source;
    if (unnamed && name && step.schedule->order == steps.front().schedule->order)
      step.schedule.rename(*name);
  }
}

/// The steps with their replicas; empty where some steps lack a replica.
std::vector<ReplicatedStep> join_replicas(const std::vector<traces::MeasuredStep>& steps) {
  std::map<std::int64_t, ReplicatedStep> by_number;
  for (const traces::MeasuredStep& step : steps)
    by_number[step.number].push_back({step.program, step.timeline});
  std::vector<ReplicatedStep> replicated;
  for (auto& [_, replicas] : by_number) replicated.push_back(std::move(replicas));
  for (const ReplicatedStep& step : replicated)
    if (step.size() != replicated.front().size()) return {};
  return replicated;
}

traces::TrustEvidence evidence_of(const traces::Iterations& iterations, const ReadSteps& read) {
  traces::TrustEvidence evidence{{}, read.doubts, read.faults};
  for (const traces::IterationRow& row : iterations.rows)
    evidence.replay_errors.push_back(row.replay_error);
  return evidence;
}

bool is_trusted(const Analysis& analysis) {
  return analysis.iterations.trust.verdict != traces::Verdict::kNone;
}

/// Removes everything that the trace does not explain. This is the only place, so that no report,
/// drawing or file can differ.
Analysis remove_conclusions(Analysis analysis) {
  analysis.iterations = remove_conclusions(std::move(analysis.iterations));
  analysis.shown.report = remove_conclusions(std::move(analysis.shown.report));
  analysis.median = remove_conclusions(std::move(analysis.median));
  return analysis;
}

Analysis analyze_steps(ReadSteps read, const UniformMemory& memory) {
  std::vector<traces::MeasuredStep>& steps = read.steps;
  name_steps(steps);
  traces::Iterations iterations;
  std::vector<BubbleReport> reports;
  std::vector<ObservedStep> observed;
  const MemoryModel model = make_uniform_memory(steps.front().schedule->shape, memory);
  for (const traces::MeasuredStep& step : steps) {
    const BubbleReport& report =
        reports.emplace_back(analyze(step.schedule, step.program, step.timeline, model));
    iterations.rows.push_back({step.label, report.makespan, report.bubble->ratio,
                               replay_error(step.program, step.timeline)});
    observed.push_back({step.program, step.timeline});
  }
  if (!is_broken(steps.front())) {
    iterations.stragglers = find_stragglers(observed);
    const std::vector<ReplicatedStep> replicated = join_replicas(steps);
    if (!replicated.empty()) {
      iterations.causes = find_causes(replicated);
      iterations.slowdown = find_slowdown(replicated);
    }
  }
  const BubbleReport mean = average_reports(reports);
  iterations.left_out = std::move(read.left_out);
  iterations.notes = std::move(read.notes);
  iterations.whole_steps = std::move(read.whole_steps);
  iterations.trust = traces::judge_trust(mean, evidence_of(iterations, read));
  const std::size_t middle = find_median_report(reports);
  traces::MeasuredStep& median = steps[middle];
  Analysis analysis{{std::move(median.schedule)}, std::move(iterations)};
  analysis.median = reports[middle];
  analysis.median_label = median.label;
  analysis.shown.models.memory = model;
  analysis.shown.report = mean;
  analysis.shown.program = std::move(median.program);
  analysis.shown.timeline = std::move(median.timeline);
  return is_trusted(analysis) ? analysis : remove_conclusions(std::move(analysis));
}

std::string print_csv(const Analysis& analysis) {
  const BubbleReport& report = analysis.shown.report;
  return traces::write_report_csv(
      report, {{"makespan_ns", fmt::format("{}", report.makespan)},
               {"step_ns", fmt::format("{}", traces::compute_mean_step(analysis.iterations))},
               {"trust", std::string(to_string(analysis.iterations.trust.verdict))}});
}

std::string print_json(const Analysis& analysis) {
  const TimedStep& step = analysis.shown;
  return traces::write_report_json(
      step.report, step.program, step.timeline,
      [&](traces::JsonWriter& json) { traces::write_iterations_json(json, analysis.iterations); });
}

std::string print_text(const Analysis& analysis, const traces::DrawOptions& draw) {
  const TimedStep& step = analysis.shown;
  const traces::Iterations& iterations = analysis.iterations;
  return traces::write_left_out_text(iterations) + traces::write_trust_text(iterations.trust) +
         traces::draw_timeline(step.record(), draw) + "\n" +
         traces::write_whole_step_text(iterations) +
         traces::write_text_report(step.record(), draw) + traces::write_iterations_text(iterations);
}

std::string print_report(const Analysis& analysis, const std::string& format,
                         const traces::DrawOptions& draw) {
  if (format == "json") return print_json(analysis);
  if (format == "csv") return print_csv(analysis);
  return print_text(analysis, draw);
}

/// The label of the drawn step in exported files, which show the step's own numbers: "zb-h1: median
/// of 64 iterations (dp 0 step 23), whole step 2.21 s".
std::string label_of(const Analysis& analysis) {
  const traces::Iterations& iterations = analysis.iterations;
  std::string label = analysis.shown.schedule->name;
  if (!is_trusted(analysis)) label = "NOT TRUSTED: " + label;
  if (iterations.rows.size() > 1)
    label += fmt::format(": median of {} iterations ({})", iterations.rows.size(),
                         analysis.median_label);
  if (const std::string whole = traces::write_whole_step_text(iterations); !whole.empty())
    label += fmt::format(", whole step {} in the mean",
                         traces::format_time(traces::compute_mean_step(iterations)));
  return label;
}

void write_files(const Analysis& analysis, const ExportOptions& exports,
                 const Arguments& arguments) {
  TimedStep median = analysis.shown;
  median.report = analysis.median;
  write_exports({{label_of(analysis), median}}, exports, format_command_line("analyze", arguments));
}

}  // namespace

int run_analyze(const Arguments& arguments) {
  CommandFlags app{"Report on a measured trace: bubbles, iterations, stragglers",
                   "bubblescope analyze"};
  std::vector<std::string> paths;
  std::string format;
  UniformMemory memory;
  ExportOptions exports;
  std::vector<std::string> conditions;
  bool all_ranks = false;
  app.add_option("TRACE", paths, "trace files or folders of them, - for stdin")->required();
  add_memory_options(app, memory);
  add_format_option(app, format, {"text", "json", "csv"});
  add_export_options(app, exports);
  add_gate_option(app, conditions);
  app.add_flag("--all-ranks", all_ranks,
               "show every rank in the text report, however many there are");
  app.footer(kAnalyzeExample);
  if (!app.parse(arguments)) return 0;
  const std::vector<Condition> gate = parse_conditions(conditions);
  check_export_paths(exports, format != "text");
  ReadSteps read = read_steps(paths);
  const Analysis analysis = analyze_steps(std::move(read), memory);
  const Metrics metrics = collect_metrics(analysis.shown.report);
  expect_known(gate, metrics);
  write_files(analysis, exports, arguments);
  traces::DrawOptions draw = detect_draw_options();
  draw.all_ranks = all_ranks;
  print_output("{}", print_report(analysis, format, draw));
  if (!gate.empty() && !is_trusted(analysis)) {
    print_error("--fail-if has nothing to go by: " + analysis.iterations.trust.why.front());
    return 1;
  }
  return report_failures(gate, metrics) ? 1 : 0;
}

}  // namespace bubblescope::tools
