// run: a schedule for real, with what was measured reported as a prediction is.
#include <fmt/format.h>

#include <algorithm>

#include "tools/activity_file.h"
#include "tools/exports.h"
#include "tools/flags/command_flags.h"
#include "tools/gate.h"
#include "tools/measure.h"
#include "tools/say.h"
#include "tools/terminal.h"
#include "tools/training_file.h"
#include "traces/report_csv.h"
#include "traces/report_json.h"
#include "traces/text_report.h"

namespace bubblescope {

namespace {

constexpr const char* kRunExample =
    "example: play 1F1B in real time, then train with it and see that the gradients are right\n"
    "  bubblescope run 1f1b --pp 4 -m 8 --f 10 --b 20 --backend cpu\n"
    "  bubblescope run zb-h1 --pp 2 -m 8 --backend cpu --work transformer --hidden-size 128\n";

/// How it was run, and whether it was right.
std::string describe(const Measurement& measurement) {
  std::vector<Nanos> sorted = measurement.makespans;
  std::sort(sorted.begin(), sorted.end());
  std::string text = fmt::format("\nmeasured on {}, --work {}, {}\n", measurement.backend,
                                 measurement.work, measurement.device);
  text += fmt::format("{} step(s): makespan {:.6g} ms to {:.6g} ms; shown is the median\n",
                      sorted.size(), static_cast<double>(sorted.front()) / 1e6,
                      static_cast<double>(sorted.back()) / 1e6);
  const std::string devices = to_string(measurement.devices);
  if (!devices.empty()) text += devices + "\n";
  if (measurement.activity) text += to_string(*measurement.activity) + "\n";
  if (!measurement.epilogues.empty()) text += to_string(measurement.epilogues) + "\n";
  if (measurement.proof) text += to_string(*measurement.proof) + "\n";
  return text;
}

int status_of(const Measurement& measurement) {
  if (measurement.breakdown) return exit_status(measurement.breakdown->fault);
  return measurement.proof && !measurement.proof->matches ? 1 : 0;
}

std::string print_report(const Measurement& measurement, const std::string& format) {
  const Step& step = measurement.step;
  if (format == "json")
    return with_members(write_report_json(step.report, step.program, step.timeline),
                        json_members(measurement));
  if (format == "csv") return write_report_csv(step.report);
  const DrawOptions draw = terminal_draw_options();
  return draw_timeline(step.recording(), draw) + "\n" + write_text_report(step.recording(), draw) +
         describe(measurement);
}

}  // namespace

int run_run(const Arguments& arguments) {
  CommandFlags app{"Run one schedule for real and report what was measured", "bubblescope run"};
  std::string name;
  std::string format;
  std::string training_file;
  PredictOptions options;
  RunOptions run;
  std::string activity_file;
  ExportOptions exports;
  std::vector<std::string> conditions;
  run.backend = "cpu";
  app.add_option("SCHEDULE", name, "a name ('bubblescope list'), a file, or - for stdin")
      ->required();
  add_predict_options(app, options);
  add_run_options(app, run);
  app.add_option("--save-training", training_file,
                 "transformer: weights before and after, data and losses, as json")
      ->type_name("FILE");
  app.add_option("--activity", activity_file,
                 "GPUs: kernels and copies within each op of the step, by CUPTI, as .csv or .json")
      ->type_name("FILE");
  add_format_option(app, format, {"text", "json", "csv"});
  add_export_options(app, exports);
  add_gate_option(app, conditions);
  app.footer(kRunExample);
  if (!app.parse(arguments)) return 0;
  if (!training_file.empty() && run.work != WorkKind::kTransformer)
    throw Error("--save-training writes what was trained; add --work transformer");
  run.device.activity = !activity_file.empty();
  if (run.device.activity) expect_activity(activity_file, run.backend);
  const std::vector<Condition> gate = parse_conditions(conditions);
  expect_sound(exports, format != "text");
  expect_folder(training_file);
  options = read_inputs(std::move(options), {name});
  const bool trains = run.work == WorkKind::kTransformer;
  const ValidSchedule schedule =
      load_valid_schedule(name, options, trains ? CostUse::kOrderOnly : CostUse::kPriced);
  const Program program = lower_or_explain(schedule, options.cost.lower);
  Session session(run);
  if (session.processes().speaks()) warn_of_unused_run_options(app, run, options.cost.any_uniform);
  const Measurement measurement = measure(schedule, program, {options, run, session.processes()});
  // A failure's status would make the launcher end the one that tells of it.
  if (!session.reports()) return 0;
  if (measurement.breakdown) complain(measurement.breakdown->message);
  write_exports(measurement.step, exports, command_line("run", arguments));
  if (!training_file.empty() && !measurement.breakdown)
    write_and_say(training_file, write_training(run.training, schedule, measurement.trained));
  if (measurement.activity)
    write_and_say(activity_file,
                  write_activity(*measurement.activity, measurement.step, activity_file));
  if (measurement.breakdown) return status_of(measurement);
  show("{}", print_report(measurement, format));
  const int status = status_of(measurement);
  if (status != 0) complain(to_string(*measurement.proof));
  return report_failures(gate, metrics_of(measurement.step.report)) ? 1 : status;
}

}  // namespace bubblescope
