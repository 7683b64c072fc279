// Implements run, which executes a schedule and reports the measured step like a predicted one.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/ir/counted.h"
#include "sim/ir/quantile.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/memory_caps.h"
#include "sim/predict/readiness.h"
#include "tools/command_line.h"
#include "tools/commands/activity_file.h"
#include "tools/commands/chosen_orders.h"
#include "tools/commands/exports.h"
#include "tools/commands/gate.h"
#include "tools/commands/measure.h"
#include "tools/commands/measured_spread.h"
#include "tools/commands/measurement_json.h"
#include "tools/commands/training_file.h"
#include "tools/errors.h"
#include "tools/flags/arrival_options.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/field_names.h"
#include "tools/flags/output_format.h"
#include "tools/flags/shared_sizes.h"
#include "tools/flags/unstated_defaults.h"
#include "tools/inputs/assumed_defaults.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/load_schedule.h"
#include "tools/inputs/predict.h"
#include "tools/inputs/unused_flags.h"
#include "tools/print.h"
#include "tools/terminal.h"
#include "traces/reports/report_csv.h"
#include "traces/reports/report_json.h"
#include "traces/reports/text_report.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kRunExample =
    "example: play 1F1B in real time, then train with it and see that the gradients are right\n"
    "  bubblescope run 1f1b --pp 4 -m 8 --f 10 --b 20 --backend cpu\n"
    "  bubblescope run zb-h1 --pp 2 -m 8 --backend cpu --work transformer --hidden-size 128\n";

/// Describes how the schedule was run, and whether the training was verified.
std::string describe(const Measurement& measurement) {
  std::vector<Nanos> sorted = measurement.makespans;
  std::sort(sorted.begin(), sorted.end());
  std::string text = fmt::format("\nmeasured on {}, --work {}, {}\n", measurement.backend,
                                 measurement.work, measurement.device);
  text +=
      fmt::format("{}: makespan {:.6g} ms to {:.6g} ms; shown is the median\n",
                  counted(std::ssize(sorted), "step"), static_cast<double>(sorted.front()) / 1e6,
                  static_cast<double>(sorted.back()) / 1e6);
  const std::string devices = to_string(measurement.devices);
  if (!devices.empty()) text += devices + "\n";
  if (measurement.activity) text += to_string(*measurement.activity) + "\n";
  if (!measurement.epilogues.empty()) text += to_string(measurement.epilogues) + "\n";
  if (measurement.chosen) text += to_string(*measurement.chosen);
  if (measurement.verification) text += to_string(*measurement.verification) + "\n";
  if (measurement.checkpoints)
    text += to_string(*measurement.checkpoints, quantile(sorted, 50)) + "\n" +
            describe_trained(measurement.trained) + "\n";
  return text;
}

/// Each rank of a run on threads keeps a core busy, unless its ops sleep.
std::string describe_noise(const Measurement& measurement) {
  const bool needs_cores = measurement.backend == "cpu" && measurement.work != "sleep";
  return describe_noise(compute_spread(measurement.makespans),
                        needs_cores ? measurement.step.schedule->shape.ranks : 0,
                        static_cast<std::int32_t>(std::thread::hardware_concurrency()));
}

int status_of(const Measurement& measurement) {
  if (measurement.breakdown) return exit_status(measurement.breakdown->fault);
  return measurement.verification && !measurement.verification->matches ? 1 : 0;
}

std::string print_report(const Measurement& measurement, OutputFormat format) {
  const TimedStep& step = measurement.step;
  if (format == OutputFormat::kJson)
    return traces::write_report_json(
        step.report, step.program, step.timeline,
        [&](traces::JsonWriter& json) { write_measurement_json(json.line(1), measurement); });
  if (format == OutputFormat::kCsv) return traces::write_report_csv(step.report);
  const traces::DrawOptions draw = detect_draw_options();
  return describe_noise(measurement) +
         name_flags(traces::draw_timeline(step.record(), draw) + "\n" +
                    traces::write_text_report(step.record(), draw)) +
         describe(measurement);
}

struct RunCommand {
  std::string schedule;
  OutputFormat format = OutputFormat::kText;
  std::string training_file;
  std::string activity_file;
  PredictInputs inputs;
  RunOptions run;
  SharedSizes sizes;
  ExportOptions exports;
  std::vector<Condition> gate;
};

void add_options(CommandFlags& app, RunCommand& command, PredictOptions& flags) {
  app.add_option("SCHEDULE", command.schedule,
                 "a name ('bubblescope list'), a file, or - for stdin")
      ->required();
  add_predict_options(app, flags);
  add_policy_option(app, flags);
  add_loss_option(app, flags);
  add_model_and_run_options(app, flags.model, command.run, command.sizes);
  add_checkpoint_options(app, command.run.checkpoints);
  app.add_option("--save-training", command.training_file,
                 "transformer: weights before and after, data and losses, as json")
      ->type_name("FILE");
  app.add_option("--activity", command.activity_file,
                 "GPUs: kernels and copies within each op of the step, by CUPTI, as .csv or .json")
      ->type_name("FILE");
  add_format_option(app, command.format,
                    {OutputFormat::kText, OutputFormat::kJson, OutputFormat::kCsv});
  add_export_options(app, command.exports);
}

void expect_checkpoints(const RunOptions& run) {
  if (!run.checkpoints.folder.empty() && run.work != WorkKind::kTransformer)
    throw Error("--checkpoint saves what is trained; add --work transformer");
}

/// Checks combinations of flags before anything runs.
void expect_sound_run(const CommandFlags& app, const PredictOptions& flags, RunCommand& command) {
  expect_sound_checkpoints(app, command.run.checkpoints);
  expect_checkpoints(command.run);
  if (!command.training_file.empty() && command.run.work != WorkKind::kTransformer)
    throw Error("--save-training writes what was trained; add --work transformer");
  if (flags.model.given() && command.run.work == WorkKind::kTransformer)
    throw Error(
        "--model gives times for --work sleep and spin; ops of --work transformer take their real "
        "time, so leave one of them out");
  command.run.keeps_weights = !command.training_file.empty();
  command.run.device.activity = !command.activity_file.empty();
  if (command.run.device.activity) expect_activity(command.activity_file, command.run.backend);
  check_export_paths(command.exports, command.format != OutputFormat::kText);
  expect_folder(command.training_file);
}

/// Warns about flags that this run ignores.
void warn_of_unused_flags(const CommandFlags& app, const RunCommand& command,
                          const PredictedOps& ops) {
  const PredictOptions& flags = command.inputs.flags();
  warn_without_model(app, flags.model);
  if (const auto& model = command.inputs.files().model)
    note_assumed_defaults(command.inputs, *model, std::span(&ops, 1));
  warn_of_unused_sizes(app, flags.model, command.run);
  warn_of_unused_run_options(app, command.run, flags.cost.any_uniform);
  warn_of_file_shapes(flags, {command.schedule});
}

/// Refuses conditions on unknown numbers before the run, whose report has those of any step.
void expect_known_numbers(const RunCommand& command, const ValidSchedule& schedule,
                          const Program& program) {
  if (command.gate.empty()) return;
  const Timeline any = simulate(program, std::vector<Nanos>(program.size(), 1));
  const Models models = load_models(schedule, command.inputs);
  expect_known(command.gate, collect_metrics(analyze(schedule, program, any, models.memory)));
}

void write_files(const RunCommand& command, const Measurement& measurement,
                 const ValidSchedule& schedule, const Arguments& arguments) {
  write_exports(measurement.step, command.exports, format_command_line("run", arguments));
  if (!command.training_file.empty() && !measurement.breakdown)
    write_and_report(command.training_file,
                     write_training(command.run.training, schedule, measurement.trained));
  if (measurement.activity)
    write_and_report(command.activity_file, write_activity(*measurement.activity, measurement.step,
                                                           command.activity_file));
}

int show_run(const RunCommand& command, const Measurement& measurement) {
  if (measurement.breakdown) return status_of(measurement);
  print_result(print_report(measurement, command.format), command.format);
  const int status = status_of(measurement);
  if (status != 0) print_error(to_string(*measurement.verification));
  const TimedStep& step = measurement.step;
  const Problems problems = find_ranks_over_cap(collect_peaks(step.report), step.models.memory);
  for (const Problem& problem : problems)
    print_message("bubblescope: {}\n", name_flags(to_string(problem)));
  const bool failed = report_failures(command.gate, collect_metrics(step.report));
  return failed || !problems.empty() ? 1 : status;
}

}  // namespace

int run_run(const Arguments& arguments) {
  CommandFlags app{"Run one schedule for real and report what was measured", "bubblescope run"};
  RunCommand command;
  PredictOptions flags;
  command.run.backend = "cpu";
  add_options(app, command, flags);
  std::vector<std::string> conditions;
  add_gate_option(app, conditions);
  app.footer(kRunExample);
  if (!app.parse(arguments)) return 0;
  command.gate = parse_conditions(conditions);
  apply_shared_sizes(command.sizes, flags.model, command.run);
  expect_sound_run(app, flags, command);
  find_unstated_defaults(app, flags);
  command.inputs = read_inputs(std::move(flags), {command.schedule});
  const Config& config = command.inputs.config();
  const bool trains = command.run.work == WorkKind::kTransformer;
  ValidSchedule schedule = load_valid_schedule(command.schedule, command.inputs,
                                               trains ? CostUse::kOrderOnly : CostUse::kPriced);
  if (config.policy) schedule = make_hint(std::move(schedule), config.lower.overlap);
  const Program program = lower_or_explain(schedule, choose_lowering(schedule, config));
  expect_known_numbers(command, schedule, program);
  BackendSession session(command.run);
  if (session.processes().is_coordinator())
    warn_of_unused_flags(app, command, {&schedule.get(), &program});
  const Measurement measurement =
      measure(schedule, program, {command.inputs, command.run, session.processes()});
  // Exit with 0: on a failure status the launcher would end the process that reports the error.
  if (!session.start_reporting_or_wait()) return 0;
  if (measurement.breakdown) print_error(measurement.breakdown->message);
  write_files(command, measurement, schedule, arguments);
  return show_run(command, measurement);
}

}  // namespace bubblescope::tools
