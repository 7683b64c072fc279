// simulate: times one schedule and explains its bubbles.
#include <fmt/format.h>

#include "tools/exports.h"
#include "tools/flags/command_flags.h"
#include "tools/gate.h"
#include "tools/measure.h"
#include "tools/memory_caps.h"
#include "tools/model_report.h"
#include "tools/predict.h"
#include "tools/say.h"
#include "tools/terminal.h"
#include "tools/unused_costs.h"
#include "traces/made_with.h"
#include "traces/report_csv.h"
#include "traces/report_json.h"
#include "traces/text_report.h"

namespace bubblescope {

namespace {

constexpr const char* kSimulateExample =
    "example: where do the bubbles of 1F1B go when the weight gradient is split off?\n"
    "  bubblescope simulate 1f1b  --pp 4 -m 8 --f 10 --i 10 --w 9 --p2p 0.4\n"
    "  bubblescope simulate zb-h1 --pp 4 -m 8 --f 10 --i 10 --w 9 --p2p 0.4 --svg zb-h1.svg\n";

std::string print_report(const Step& step, const std::string& format, const DrawOptions& draw) {
  const std::optional<PlacedModel>& placed = step.models.placed;
  if (format == "json") {
    std::string members = write_made_with_json(step.made);
    if (placed) members += "," + write_model_json(*placed, step.report);
    return with_members(write_report_json(step.report, step.program, step.timeline), members);
  }
  if (format == "csv") return write_report_csv(step.report);
  return draw_timeline(step.recording(), draw) + "\n" + write_text_report(step.recording(), draw) +
         (placed ? write_model_text(*placed, step.report, draw) : "");
}

}  // namespace

int run_simulate(const Arguments& arguments) {
  CommandFlags app{"Time one schedule: drawing, bubbles by cause, memory peaks, critical path",
                   "bubblescope simulate"};
  std::string schedule;
  std::string format;
  PredictOptions options;
  ExportOptions exports;
  std::vector<std::string> conditions;
  app.add_option("SCHEDULE", schedule, "a name ('bubblescope list'), a file, or - for stdin")
      ->required();
  add_predict_options(app, options);
  add_noise_options(app, options.noise);
  add_model_options(app, options.model);
  add_sequence_option(app, options.model);
  add_parallel_options(app, options.model);
  add_batch_option(app, options.model);
  add_format_option(app, format, {"text", "json", "csv"});
  add_export_options(app, exports);
  add_gate_option(app, conditions);
  bool all_ranks = false;
  app.add_flag("--all-ranks", all_ranks,
               "show every rank in the text report, however many there are");
  bool wide = false;
  app.add_flag("--wide", wide, "all columns of tables, also where the terminal is narrower");
  app.footer(kSimulateExample);
  if (!app.parse(arguments)) return 0;
  warn_without_model(app, options.model);
  warn_without_noise(app, options.noise);
  const std::vector<Condition> gate = parse_conditions(conditions);
  expect_sound(exports, format != "text");
  options = read_inputs(std::move(options), {schedule});
  const Step step = predict(schedule, options);
  warn_of_unused_costs(options.cost.uniform, std::span(&step.program, 1));
  if (step.report.noise && format == "csv")
    say("bubblescope: csv has the step without noise; --format json has both\n");
  if (step.models.placed) comment_on_model(*step.models.placed, step.report, options.model.explain);
  expect_known(gate, metrics_of(step.report));
  write_exports(step, exports, command_line("simulate", arguments));
  DrawOptions draw = terminal_draw_options();
  draw.all_ranks = all_ranks;
  draw.fit = draw.fit && !wide;
  show("{}", print_report(step, format, draw));
  const Problems problems = over_cap(peaks_of(step.report), step.models.memory);
  for (const Problem& problem : problems) say("bubblescope: {}\n", problem.message);
  const bool failed = report_failures(gate, metrics_of(step.report));
  return problems.empty() && !failed ? 0 : 1;
}

}  // namespace bubblescope
