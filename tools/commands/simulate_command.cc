// Implements simulate, which times one schedule and explains its bubbles.
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/predict/memory_caps.h"
#include "tools/command_line.h"
#include "tools/commands/exports.h"
#include "tools/commands/gate.h"
#include "tools/commands/measure.h"
#include "tools/commands/step_metrics.h"
#include "tools/flags/arrival_options.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/field_names.h"
#include "tools/flags/output_format.h"
#include "tools/flags/unstated_defaults.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/load_schedule.h"
#include "tools/inputs/lost_rank.h"
#include "tools/inputs/model_headline.h"
#include "tools/inputs/model_report.h"
#include "tools/inputs/predict.h"
#include "tools/inputs/unused_flags.h"
#include "tools/print.h"
#include "tools/terminal.h"
#include "traces/reports/loss_text.h"
#include "traces/reports/report_csv.h"
#include "traces/reports/report_json.h"
#include "traces/reports/text_report.h"
#include "traces/text/fit_table.h"
#include "traces/text/shown_ranks.h"
#include "traces/timelines/made_with.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kSimulateExample =
    "example: where do the bubbles of 1F1B go when the weight gradient is split off?\n"
    "  bubblescope simulate 1f1b  --pp 4 -m 8 --f 10 --i 10 --w 9 --p2p 0.4\n"
    "  bubblescope simulate zb-h1 --pp 4 -m 8 --f 10 --i 10 --w 9 --p2p 0.4 --svg zb-h1.svg\n";

std::string print_report(const TimedStep& step, const std::optional<LossReport>& loss,
                         OutputFormat format, const traces::DrawOptions& draw) {
  const std::optional<PlacedModel>& placed = step.models.placed;
  if (format == OutputFormat::kJson)
    return traces::write_report_json(step.report, step.program, step.timeline,
                                     [&](traces::JsonWriter& json) {
                                       traces::write_made_with_json(json.line(1), step.made);
                                       if (loss) traces::write_loss_json(json.line(1), *loss);
                                       if (placed) write_model_json(json, *placed, step.report);
                                     });
  if (format == OutputFormat::kCsv) return traces::write_report_csv(step.report);
  const std::string text = name_flags(traces::draw_timeline(step.record(), draw) + "\n" +
                                      traces::write_text_report(step.record(), draw));
  if (loss) return traces::write_loss_text(*loss) + "\n" + text;
  if (!placed) return text;
  const std::string headline = write_model_headline(*placed, step.report);
  return traces::fold_lines(headline, draw.width) + "\n" + text +
         write_model_text(*placed, step.report, draw);
}

struct SimulateOptions {
  std::string schedule;
  OutputFormat format = OutputFormat::kText;
  PredictInputs inputs;
  ExportOptions exports;
  std::vector<Condition> gate;
  bool all_ranks = false;
  bool wide = false;
};

/// Parses the command line and reads what it names; empty if --help was given.
std::optional<SimulateOptions> parse_simulate_options(const Arguments& arguments) {
  CommandFlags app{"Time one schedule: drawing, bubbles by cause, memory peaks, critical path",
                   "bubblescope simulate"};
  SimulateOptions options;
  PredictOptions flags;
  std::vector<std::string> conditions;
  app.add_option("SCHEDULE", options.schedule,
                 "a name ('bubblescope list'), a file, or - for stdin")
      ->required();
  add_predict_options(app, flags);
  add_noise_options(app, flags.noise);
  add_arrival_options(app, flags);
  add_loss_option(app, flags, LossKeys::kRankAndTime);
  add_held_memory_options(app, flags);
  add_model_options(app, flags.model);
  add_format_option(app, options.format,
                    {OutputFormat::kText, OutputFormat::kJson, OutputFormat::kCsv});
  add_export_options(app, options.exports);
  add_gate_option(app, conditions);
  app.add_flag("--all-ranks", options.all_ranks,
               "show every rank in the text report, however many there are");
  app.add_flag("--wide", options.wide,
               "all columns of tables, also where the terminal is narrower");
  app.footer(kSimulateExample);
  if (!app.parse(arguments)) return {};
  if (options.format != OutputFormat::kJson && !writes_files(options.exports))
    flags.slack = Slack::kSkip;  // the text and the csv do not show it
  warn_without_model(app, flags.model);
  find_unstated_defaults(app, flags);
  options.gate = parse_conditions(conditions);
  check_export_paths(options.exports, options.format != OutputFormat::kText);
  options.inputs = read_inputs(std::move(flags), {options.schedule});
  warn_without_noise(app, options.inputs.flags().noise, noise_of_costs(options.inputs));
  return options;
}

/// Predicts the step: as a whole where files show every op of it, else what the report shows.
TimedStep predict_shown(const SimulateOptions& options) {
  if (writes_files(options.exports)) return predict_timed_step(options.schedule, options.inputs);
  return predict_report(options.schedule, options.inputs, [&](const BubbleReport& report) {
    return options.format == OutputFormat::kText
               ? traces::choose_shown_ranks(report, options.all_ranks)
               : std::vector<std::int32_t>{};
  });
}

/// The step, and where a rank is lost what that costs.
struct SimulatedJob {
  TimedStep step;
  std::optional<LossReport> loss = {};
};

SimulatedJob simulate_step(const SimulateOptions& options) {
  const PredictInputs& inputs = options.inputs;
  if (!inputs.flags().loss) return {predict_shown(options)};
  const ValidSchedule pipeline = load_pipeline(options.schedule, inputs);
  SimulatedJob simulated{predict_timed_step(reroute_pipeline(pipeline, inputs), inputs)};
  simulated.loss = report_lost_rank(options.schedule, pipeline, simulated.step.schedule, inputs);
  return simulated;
}

void warn_of_step(const TimedStep& step, const SimulateOptions& options) {
  const PredictedOps ops{&step.schedule.get(), &step.program};
  warn_of_unused_flags(options.inputs, std::span(&ops, 1));
  warn_of_file_shapes(options.inputs.flags(), {options.schedule});
  if (step.report.noise && options.format == OutputFormat::kCsv)
    print_message("bubblescope: csv has the step without noise; --format json has both\n");
  warn_of_noise(step.report, options.gate);
  if (step.models.placed)
    report_model_notes(*step.models.placed, step.report, options.inputs.flags().model);
}

}  // namespace

int run_simulate(const Arguments& arguments) {
  const std::optional<SimulateOptions> parsed = parse_simulate_options(arguments);
  if (!parsed) return 0;
  const SimulateOptions& options = *parsed;
  const SimulatedJob simulated = simulate_step(options);
  const TimedStep& step = simulated.step;
  const std::optional<LossReport>& loss = simulated.loss;
  warn_of_step(step, options);
  const Metrics metrics = collect_step_metrics(step);
  expect_known(options.gate, metrics);
  write_exports(step, options.exports, format_command_line("simulate", arguments));
  traces::DrawOptions draw = detect_draw_options();
  draw.all_ranks = options.all_ranks;
  draw.fit = draw.fit && !options.wide;
  print_fitted(print_report(step, loss, options.format, draw),
               draw.fit && options.format == OutputFormat::kText);
  const Problems problems = find_ranks_over_cap(collect_peaks(step.report), step.models.memory);
  for (const Problem& problem : problems)
    print_message("bubblescope: {}\n", name_flags(to_string(problem)));
  const bool failed = report_failures(options.gate, metrics);
  return problems.empty() && !failed ? 0 : 1;
}

}  // namespace bubblescope::tools
