// Implements analyze, which reports measured steps like predicted ones and names stragglers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/predict/memory_caps.h"
#include "tools/command_line.h"
#include "tools/commands/analyze_job.h"
#include "tools/commands/exports.h"
#include "tools/commands/gate.h"
#include "tools/commands/job_table.h"
#include "tools/commands/measure.h"
#include "tools/commands/stream_texts.h"
#include "tools/commands/timer_logs.h"
#include "tools/errors.h"
#include "tools/flags/choice.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/field_names.h"
#include "tools/flags/key_values.h"
#include "tools/flags/output_format.h"
#include "tools/flags/schedule_list.h"
#include "tools/inputs/unused_flags.h"
#include "tools/plan/sweep.h"
#include "tools/print.h"
#include "tools/terminal.h"
#include "traces/files/file.h"
#include "traces/reports/cause_text.h"
#include "traces/reports/iterations.h"
#include "traces/reports/report_csv.h"
#include "traces/reports/report_json.h"
#include "traces/reports/summarize_job.h"
#include "traces/reports/text_report.h"
#include "traces/reports/tries.h"
#include "traces/reports/worker_map_text.h"
#include "traces/text/time_axis.h"
#include "traces/timelines/made_with.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kAnalyzeExample =
    "example: where do the bubbles of a real run come from?\n"
    "  bubblescope analyze rank0.json.gz rank1.json.gz rank2.json.gz rank3.json.gz\n"
    "  bubblescope simulate zb-h1 --pp 4 -m 8 --trace step.json && bubblescope analyze step.json\n"
    "TRACE is Chrome json (ours; StragglerAnalysis'; PyTorch's profiler, whose ops\n"
    "are named PP:0F3 as PyTorch's pipelining does), an Nsight Systems sqlite export\n"
    "with such NVTX ranges, or what --save or --timeline wrote. Several files are\n"
    "the ranks of one pipeline, or more iterations. Where names are your own,\n"
    "--rules FILE says what they mean. A log with Megatron-LM's or DeepSpeed's\n"
    "timers is reported as far as they allow. docs/traces.md has all formats.\n"
    "example: what would this run take with another schedule?\n"
    "  bubblescope analyze trace/ --try zb-h1,interleaved -m 8,16 --split-b 0.5\n";

struct AnalyzeOptions {
  std::vector<std::string> paths;
  std::string rules;  ///< file; empty: names mean what the field means by them
  OutputFormat format = OutputFormat::kText;
  MemoryRequest memory;
  ExportOptions exports;
  std::vector<Condition> gate;
  JobOptions job;
  std::optional<std::string> costs_out;
  std::optional<std::string> try_out;
  bool each = false;
  bool all_ranks = false;
};

std::string print_csv(const Analysis& analysis) {
  const BubbleReport& report = analysis.shown.report;
  const std::optional<Nanos> step = traces::find_known_step(analysis.iterations);
  return traces::write_report_csv(
      report, {{"makespan_ns", fmt::format("{}", report.makespan)},
               {"step_ns", step ? fmt::format("{}", *step) : ""},
               {"trust", std::string(to_string(analysis.iterations.trust.verdict))}});
}

std::optional<traces::Tries> tries_of(const Analysis& analysis) {
  if (!analysis.tried) return {};
  return analysis.tried->tries;
}

/// The causes; null where none are known.
const CauseReport* causes_of(const Analysis& analysis) {
  const auto& causes = analysis.iterations.causes;
  return causes && causes->is_known ? &*causes : nullptr;
}

std::string print_json(const Analysis& analysis, bool tries) {
  const TimedStep& step = analysis.shown;
  return traces::write_report_json(
      step.report, step.program, step.timeline, [&](traces::JsonWriter& json) {
        if (!step.made.costs.empty()) traces::write_made_with_json(json.line(1), step.made);
        traces::write_iterations_json(json, analysis.iterations);
        if (tries)
          traces::write_tries_json(json, tries_of(analysis), causes_of(analysis),
                                   traces::compute_mean_step(analysis.iterations));
      });
}

std::string print_tries(const Analysis& analysis) {
  if (!analysis.tried) return {};
  return traces::write_tries_text(analysis.tried->tries, causes_of(analysis),
                                  traces::compute_mean_step(analysis.iterations));
}

/// Returns the heat map for a terminal that is 80 columns wide.
std::string print_worker_map(const traces::Iterations& iterations) {
  if (!iterations.slowdown) return {};
  return traces::write_worker_map_text(
      traces::make_worker_map(*iterations.slowdown, iterations.step_numbers, {8, 48}));
}

std::string print_text(const Analysis& analysis, const traces::DrawOptions& draw) {
  const TimedStep& step = analysis.shown;
  const traces::Iterations& iterations = analysis.iterations;
  return traces::write_left_out_text(iterations) + traces::write_trust_text(iterations.trust) +
         name_flags(traces::draw_timeline(step.record(), draw)) + "\n" +
         traces::write_whole_step_text(iterations) +
         traces::write_step_period_text(iterations.step_period) +
         name_flags(traces::write_text_report(step.record(), draw)) +
         traces::write_iterations_text(iterations) + print_worker_map(iterations) +
         print_tries(analysis);
}

std::string print_report(const Analysis& analysis, const AnalyzeOptions& options) {
  traces::DrawOptions draw = detect_draw_options();
  draw.all_ranks = options.all_ranks;
  if (options.format == OutputFormat::kJson)
    return print_json(analysis, !options.job.tries.schedules.empty());
  if (options.format == OutputFormat::kCsv) return print_csv(analysis);
  return print_text(analysis, draw);
}

/// The label of the drawn step in exported files, which show the step's own numbers: "zb-h1: median
/// of 64 iterations (replica 0 step 23), whole step 2.21 s".
std::string label_of(const Analysis& analysis) {
  const traces::Iterations& iterations = analysis.iterations;
  std::string label = analysis.shown.schedule->name;
  const std::vector<std::string>& reasons = iterations.trust.why;
  if (!analysis.is_trusted())
    label = "NOT TRUSTED: " + label;
  else if (!reasons.empty())
    label = fmt::format("{} (trusted with reservations: {})", label, fmt::join(reasons, "; "));
  if (iterations.rows.size() > 1)
    label += fmt::format(": median of {} ({})", counted(iterations.rows.size(), "iteration"),
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
  const traces::Iterations& iterations = analysis.iterations;
  median.job = traces::summarize_job(iterations);
  MeasuredFindings findings;
  if (iterations.slowdown)
    findings.workers =
        traces::make_worker_map(*iterations.slowdown, iterations.step_numbers, {64, 256});
  if (iterations.causes)
    findings.causes =
        traces::describe_causes(*iterations.causes, traces::compute_mean_step(iterations),
                                traces::has_replicas(iterations));
  write_exports({{label_of(analysis), median}}, exports, format_command_line("analyze", arguments),
                findings);
}

/// Replaces "all" in a list by the schedules that it stands for.
TryOptions list_tries(const std::string& text, TryOptions tries) {
  ExpandedList expanded = expand_all(text, list_all_tries());
  tries.of_all = {expanded.names.begin(), expanded.names.end()};
  for (const std::string& asked : expanded.asked)
    std::erase_if(tries.of_all,
                  [&](const std::string& name) { return is_same_schedule(name, asked); });
  tries.schedules = std::move(expanded.names);
  return tries;
}

void add_job_options(CommandFlags& app, AnalyzeOptions& options) {
  app.add_option("--costs-out", options.costs_out,
                 "fit costs and noise to the steps and write them as a --costs file")
      ->type_name("FILE");
  add_choice<bool>(
      app, {"--costs-per", "whether --costs-out has a stage's mean times, or one per micro-batch"},
      {{"stage", false}, {"microbatch", true}},
      [&](bool per_microbatch) { options.job.per_microbatch = per_microbatch; });
  add_parsed(
      app,
      {"--split-b", "the input gradient's fraction of backwards that were never split, such as 0.5",
       "FRACTION"},
      [&](const std::string& text) { options.job.split_backward = parse_fraction(text, 1); });
  TryOptions& tries = options.job.tries;
  add_parsed(app,
             {"--try", "predict this job with other schedules, or 'all'; 'search' looks for one",
              "SCHEDULE[,...]"},
             [&](const std::string& text) {
               tries = list_tries(text, std::move(tries));
               if (tries.schedules.empty())
                 throw Error("needs schedules, such as zb-h1,interleaved");
             });
  add_parsed(app, {"-m,--microbatches", "micro-batches for --try, of the measured size", "N[,...]"},
             [&](const std::string& text) { tries.microbatches = parse_numbers(text); });
  add_parsed(app,
             {"--vpp", "chunks per rank for --try, where a schedule leaves them open", "N[,...]"},
             [&](const std::string& text) { tries.chunks = parse_numbers(text); });
  app.add_option("--try-out", options.try_out, "write the best schedule of --try")
      ->type_name("FILE");
  app.add_flag("--each", options.each, "every TRACE is a job of its own: one row of csv for each");
}

void expect_consistent(const AnalyzeOptions& options) {
  const TryOptions& tries = options.job.tries;
  if (tries.schedules.empty() && !tries.microbatches.empty())
    throw Error("-m goes with --try, which names the schedules");
  if (tries.schedules.empty() && !tries.chunks.empty())
    throw Error("--vpp goes with --try, which names the schedules");
  if (tries.schedules.empty() && options.try_out)
    throw Error("--try-out goes with --try, which names the schedules");
  if (options.try_out && !options.try_out->ends_with(".json") &&
      !options.try_out->ends_with(".csv"))
    throw Error("--try-out " + *options.try_out +
                ": end the name in .json for our own format or in .csv for PyTorch's");
  if (options.each && (options.costs_out || !tries.schedules.empty()))
    throw Error("--each reports many jobs; --costs-out and --try are for one");
  if (options.each && (options.format == OutputFormat::kJson || options.all_ranks))
    throw Error("--each prints a csv row per job; leave --format json and --all-ranks out");
  for (const auto& [name, path] : options.exports)
    if (path && options.each)
      throw Error("--each prints a csv row per job and shows no step; leave --" + name + " out");
  if (options.job.per_microbatch && !options.costs_out)
    throw Error("--costs-per microbatch goes with --costs-out");
  if (options.job.per_microbatch && !tries.schedules.empty())
    throw Error(
        "--try needs mean times per stage, which any number of micro-batches takes; leave "
        "--costs-per microbatch out, or give the written costs to simulate and compare");
  if (options.job.split_backward && !options.costs_out && tries.schedules.empty())
    throw Error("--split-b goes with --costs-out or --try");
  if (options.format == OutputFormat::kCsv && !tries.schedules.empty())
    throw Error("--format csv holds one step; give --try with --format json or text");
}

/// Parses the command line; empty if --help was given.
std::optional<AnalyzeOptions> parse_analyze_options(const Arguments& arguments) {
  CommandFlags app{"Report on a measured trace: bubbles, iterations, stragglers",
                   "bubblescope analyze"};
  AnalyzeOptions options;
  std::vector<std::string> conditions;
  app.add_option("TRACE", options.paths, "trace files or folders of them, - for stdin")->required();
  app.add_option("--rules", options.rules, "a file that says what the names in the traces mean")
      ->type_name("FILE");
  add_memory_options(app, options.memory.memory);
  add_format_option(app, options.format,
                    {OutputFormat::kText, OutputFormat::kJson, OutputFormat::kCsv});
  add_export_options(app, options.exports);
  add_gate_option(app, conditions);
  add_job_options(app, options);
  app.add_flag("--all-ranks", options.all_ranks,
               "show every rank in the text report, however many there are");
  app.footer(kAnalyzeExample);
  if (!app.parse(arguments)) return {};
  options.memory.replaces_model = app.given_under(kMemoryHeading).size() > app.count("--cap");
  options.gate = parse_conditions(conditions);
  options.job.tries.by_pytorch = options.rules.empty();  // else another runtime named the ops
  expect_consistent(options);
  options.job.fits_costs = options.costs_out.has_value();
  ExportOptions written = options.exports;
  written["costs-out"] = options.costs_out;
  written["try-out"] = options.try_out;
  check_export_paths(written, options.format != OutputFormat::kText);
  expect_inputs_kept(written, options.paths);
  return options;
}

/// Writes the costs and the best of the tries.
void write_fitted(const Analysis& analysis, const AnalyzeOptions& options) {
  if (options.costs_out) {
    std::string source = fmt::format("{}", fmt::join(options.paths, " "));
    write_and_report(*options.costs_out, write_job_costs(*analysis.costs, source,
                                                         analysis.iterations.trust.replay_error));
    for (const std::string& note : analysis.costs->notes) print_message("bubblescope: {}\n", note);
  }
  if (!options.try_out) return;
  if (!analysis.tried->best)
    throw Error(Fault::kProblem, "--try-out: none of the schedules can be run; nothing is written");
  const ValidSchedule& best = *analysis.tried->best;
  const char* format = options.try_out->ends_with(".csv") ? "pytorch-csv" : "native";
  const traces::ScheduleFormat& to = *Registry<traces::ScheduleFormat>::instance().find(format);
  write_and_report(*options.try_out, to.write(best));
}

/// Logs of timers have no steps that could be judged or predicted.
void expect_report_alone(const AnalyzeOptions& options) {
  const auto refuse = [&](const char* flag, const char* lack) {
    throw Error(fmt::format("{} is a log of timers, which has no {}; {} needs a trace",
                            traces::name_input(options.paths[0]), lack, flag));
  };
  if (!options.gate.empty()) refuse("--fail-if", "bubble");
  if (options.costs_out) refuse("--costs-out", "op times");
  if (!options.job.tries.schedules.empty()) refuse("--try", "op times");
  if (!options.rules.empty()) refuse("--rules", "names of ops");
  const UniformMemory& memory = options.memory.memory;
  if (options.memory.replaces_model || !memory.cap.empty() || !memory.cap_bytes.empty())
    refuse("--cap, --mem, --release or --saved-fraction", "ops");
  for (const auto& [name, path] : options.exports)
    if (path) refuse(("--" + name).c_str(), "timeline");
}

/// Reports ranks that hold more than their caps, and flags about memory without an effect.
bool exceeds_caps(const Analysis& analysis, const UniformMemory& memory) {
  const TimedStep& step = analysis.shown;
  warn_of_unused_memory(memory, {&step.schedule.get(), &step.program});
  const Problems problems = find_ranks_over_cap(collect_peaks(step.report), step.models.memory);
  for (const Problem& problem : problems)
    print_message("bubblescope: {}\n", name_flags(to_string(problem)));
  return !problems.empty();
}

/// Says what `--try` asks for and cannot be tried.
bool lacks_tries(const Analysis& analysis, const TryOptions& options) {
  if (!analysis.tried) return false;
  const std::vector<std::string> refused = list_refused(analysis.tried->tries, options);
  if (!refused.empty()) print_message("bubblescope: not tried: {}\n", fmt::join(refused, ", "));
  return !refused.empty();
}

int report_each(const AnalyzeOptions& options) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  std::string text = write_job_header();
  StepTrend trend;
  bool failed = false;
  for (const std::string& path : options.paths) {
    std::optional<Analysis> analysis;
    try {
      StreamTexts streams({path});
      if (const std::optional<traces::TimerLog> log = read_timer_log(path, streams)) {
        std::optional<double> change;
        if (log->iteration_ms) change = trend.add(*log->iteration_ms * 1e6);
        text += write_log_row(path, *log, change);
        failed = fails_gate(*log, options.gate) || failed;
        continue;
      }
      analysis = analyze_steps(read_steps({path}, options.rules, streams), options.memory, {});
    } catch (const Error& unreadable) {
      text += write_problem_row(path, name_flags(unreadable.what()));
      failed = true;
      continue;
    }
    const std::optional<double> change = trend.add(traces::find_known_step(analysis->iterations));
    text += write_job_row(path, *analysis, change);
    failed = exceeds_caps(*analysis, options.memory.memory) || failed;
    failed = fails_gate(*analysis, options.gate, {path, change.value_or(kUnknown)}) || failed;
  }
  print_output("{}", text);
  return failed ? 1 : 0;
}

}  // namespace

int run_analyze(const Arguments& arguments) {
  const std::optional<AnalyzeOptions> options = parse_analyze_options(arguments);
  if (!options) return 0;
  if (options->each) return report_each(*options);
  StreamTexts streams(options->paths);
  if (const std::optional<std::string> timers =
          report_timer_logs(options->paths, options->format, streams)) {
    expect_report_alone(*options);
    print_result(*timers, options->format);
    return 0;
  }
  const Analysis analysis = analyze_steps(read_steps(options->paths, options->rules, streams),
                                          options->memory, options->job);
  expect_known(options->gate, collect_job_metrics(analysis));
  write_files(analysis, options->exports, arguments);
  print_result(print_report(analysis, *options), options->format);
  if (!analysis.is_trusted() && (options->costs_out || !options->job.tries.schedules.empty())) {
    print_error("nothing can be predicted from these steps, and nothing is written: " +
                analysis.iterations.trust.why.front());
    return 1;
  }
  write_fitted(analysis, *options);
  const bool lacks = lacks_tries(analysis, options->job.tries);
  const bool exceeds = exceeds_caps(analysis, options->memory.memory);
  return fails_gate(analysis, options->gate) || exceeds || lacks ? 1 : 0;
}

}  // namespace bubblescope::tools
