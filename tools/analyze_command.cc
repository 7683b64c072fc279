// analyze: what was measured, reported as a prediction is, and who was slow.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "sim/analysis/analyze.h"
#include "sim/analysis/mean_report.h"
#include "sim/analysis/replay.h"
#include "sim/model/schedule_def.h"
#include "tools/exports.h"
#include "tools/gate.h"
#include "tools/measure.h"
#include "tools/predict.h"
#include "tools/say.h"
#include "tools/terminal.h"
#include "traces/iterations.h"
#include "traces/measured_steps.h"
#include "traces/report_csv.h"
#include "traces/report_json.h"
#include "traces/text_report.h"

namespace bubblescope {

namespace {

constexpr const char* kExample =
    "example: where do the bubbles of a real run come from?\n"
    "  bubblescope analyze rank0.json.gz rank1.json.gz rank2.json.gz rank3.json.gz\n"
    "  bubblescope simulate zb-h1 --pp 4 -m 8 --trace step.json && bubblescope analyze step.json\n"
    "TRACE is Chrome json (ours; StragglerAnalysis'; PyTorch's profiler, whose ops are named "
    "PP:0F3\n"
    "as PyTorch's pipelining does), an Nsight Systems sqlite export with such NVTX ranges, or "
    "what\n"
    "--save or --timeline wrote. Several files are the ranks of one pipeline, or more "
    "iterations.\n";

constexpr std::int64_t kMostOpsToRecognize = 200'000;

/// Everything about the measured steps: the mean report, and the step that stands for them.
struct Analysis {
  Step shown;
  Iterations iterations;
};

bool is_broken(const MeasuredStep& step) { return !step.timeline.breakdown.empty(); }

/// What files hold, and what had to be left out of it or corrected.
struct ReadSteps {
  std::vector<MeasuredStep> steps;
  std::vector<std::string> notes;
};

/// Steps that broke off are left out where others are whole, and said to be what they are.
ReadSteps set_broken_apart(ReadSteps read) {
  std::vector<MeasuredStep>& steps = read.steps;
  const auto broken = std::find_if(steps.begin(), steps.end(), is_broken);
  if (broken == steps.end()) return read;
  const std::string why = broken->timeline.breakdown;
  const auto count = std::count_if(steps.begin(), steps.end(), is_broken);
  if (count < std::ssize(steps)) {
    read.notes.push_back(fmt::format("{} step(s) left out, which broke off: {}", count, why));
    std::erase_if(steps, is_broken);
  } else {
    read.notes.push_back("this is no whole step, it broke off: " + why +
                         "; what never started stands at its end, with no length");
  }
  return read;
}

void expect_different(const std::vector<std::string>& paths) {
  std::error_code ignored;
  for (std::size_t at = 0; at < paths.size(); ++at)
    for (std::size_t before = 0; before < at; ++before)
      if (paths[at] == paths[before] ||
          std::filesystem::equivalent(paths[at], paths[before], ignored))
        throw Error(paths[at] + " is given twice; give every trace once");
}

ReadSteps read_steps(const std::vector<std::string>& paths) {
  expect_different(paths);
  ObservedTrace trace;
  for (const std::string& path : paths) {
    ObservedTrace further = read_trace(path);
    for (MeasuredStep& step : further.steps)
      if (step.label.empty() && paths.size() > 1) step.label = path;
    append(trace, std::move(further));
  }
  std::vector<MeasuredStep> steps = measured_steps(trace);
  for (const MeasuredStep& step : steps)
    if (step.program.ranks != steps.front().program.ranks)
      throw Error(fmt::format("the traces are of {} and of {} ranks; analyze them one by one",
                              steps.front().program.ranks, step.program.ranks));
  return set_broken_apart({std::move(steps), std::move(trace.notes)});
}

/// The registered schedule that runs these ops in this order; traces do not say its name. Schedules
/// that search for an order are not asked.
std::optional<std::string> recognize(const Schedule& schedule) {
  if (schedule.op_count() > kMostOpsToRecognize) return {};
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    ScheduleRequest request;
    request.shape = schedule.shape;
    if (def.reads_costs ||
        def.implied_chunks.value_or(schedule.shape.chunks) != schedule.shape.chunks)
      continue;
    if (def.refuse && !def.refuse(request).empty()) continue;
    const Schedule built = def.build(request);
    if (built.order == schedule.order && built.rank_of_stage == schedule.rank_of_stage)
      return def.name;
  }
  return {};
}

void name_steps(std::vector<MeasuredStep>& steps) {
  const std::optional<std::string> name = recognize(steps.front().schedule);
  for (MeasuredStep& step : steps) {
    const bool unnamed = step.schedule.name == step.timeline.source;
    if (unnamed && name && step.schedule.order == steps.front().schedule.order)
      step.schedule.name = *name;
  }
}

Analysis analyze_steps(std::vector<MeasuredStep> steps, const MemoryOptions& memory) {
  name_steps(steps);
  Analysis analysis;
  std::vector<BubbleReport> reports;
  std::vector<ObservedStep> observed;
  analysis.shown.models.memory = uniform_memory(steps.front().schedule.shape, memory);
  for (const MeasuredStep& step : steps) {
    const BubbleReport& report = reports.emplace_back(
        analyze(step.schedule, step.program, step.timeline, analysis.shown.models.memory));
    analysis.iterations.rows.push_back({step.label, report.makespan, report.bubble.ratio,
                                        replay_error(step.program, step.timeline)});
    observed.push_back({step.program, step.timeline});
  }
  if (!is_broken(steps.front())) analysis.iterations.stragglers = find_stragglers(observed);
  MeasuredStep& median = steps[median_report(reports)];
  analysis.shown.report = mean_of(reports);
  analysis.shown.schedule = std::move(median.schedule);
  analysis.shown.program = std::move(median.program);
  analysis.shown.timeline = std::move(median.timeline);
  return analysis;
}

std::string print_report(const Analysis& analysis, const std::string& format,
                         const DrawOptions& draw) {
  const Step& step = analysis.shown;
  if (format == "json")
    return with_members(write_report_json(step.report, step.program, step.timeline),
                        write_iterations_json(analysis.iterations));
  if (format == "csv") return write_report_csv(step.report);
  return draw_timeline(step.recording(), draw) + "\n" + write_text_report(step.recording(), draw) +
         write_iterations_text(analysis.iterations);
}

}  // namespace

int run_analyze(const Arguments& arguments) {
  CLI::App app{"Report on a measured trace: bubbles, iterations, stragglers",
               "bubblescope analyze"};
  std::vector<std::string> paths;
  std::string format;
  MemoryOptions memory;
  ExportOptions exports;
  std::vector<std::string> conditions;
  bool all_ranks = false;
  app.add_option("TRACE", paths, "trace files, - for stdin")->required();
  add_memory_options(app, memory);
  add_format_option(app, format, {"text", "json", "csv"});
  add_export_options(app, exports);
  add_gate_option(app, conditions);
  app.add_flag("--all-ranks", all_ranks,
               "show every rank in the text report, however many there are");
  app.footer(kExample);
  if (!parse(app, arguments)) return 0;
  const std::vector<Condition> gate = parse_conditions(conditions);
  expect_sound(exports, format != "text");
  ReadSteps read = read_steps(paths);
  Analysis analysis = analyze_steps(std::move(read.steps), memory);
  analysis.iterations.notes = std::move(read.notes);
  const Metrics metrics = metrics_of(analysis.shown.report);
  expect_known(gate, metrics);
  write_exports(analysis.shown, exports, command_line("analyze", arguments));
  DrawOptions draw = terminal_draw_options();
  draw.all_ranks = all_ranks;
  show("{}", print_report(analysis, format, draw));
  return report_failures(gate, metrics) ? 1 : 0;
}

}  // namespace bubblescope
