// search: finds a schedule for given costs and memory, and bounds how good any could be.
#include <fmt/format.h>

#include <utility>

#include "schedules/search/schedule_search.h"
#include "sim/ir/counted.h"
#include "tools/command_line.h"
#include "tools/commands/exports.h"
#include "tools/commands/gate.h"
#include "tools/commands/search_schedule.h"
#include "tools/commands/step_metrics.h"
#include "tools/flags/choice.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/field_names.h"
#include "tools/flags/output_format.h"
#include "tools/flags/unstated_defaults.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/model_report.h"
#include "tools/inputs/predict.h"
#include "tools/inputs/unused_flags.h"
#include "tools/interrupt.h"
#include "tools/print.h"
#include "tools/terminal.h"
#include "traces/reports/report_csv.h"
#include "traces/reports/report_json.h"
#include "traces/reports/text_report.h"
#include "traces/text/wording.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kSearchExample =
    "example: the shortest step in which no rank holds more than three micro-batches\n"
    "  bubblescope search --pp 4 -m 8 --f 10 --i 10 --w 9 --p2p 0.4 --cap 3 --save found.json\n"
    "  bubblescope simulate found.json --f 10 --i 10 --w 9 --p2p 0.4 --svg found.svg\n";

void add_search_options(CommandFlags& app, SearchOptions& options) {
  add_choice<schedules::PlacementChoice>(
      app, {"--placement", "placement of stages (default linear)"},
      {{"linear", schedules::PlacementChoice::kLinear},
       {"interleaved", schedules::PlacementChoice::kInterleaved},
       {"v", schedules::PlacementChoice::kV},
       {"wave", schedules::PlacementChoice::kWave},
       {"free", schedules::PlacementChoice::kFree}},
      [&options](schedules::PlacementChoice to) { options.placement = to; });
  add_choice<schedules::Objective>(app, {"--objective", "what to minimize (default makespan)"},
                                   {{"makespan", schedules::Objective::kMakespan},
                                    {"span", schedules::Objective::kSpan},
                                    {"period", schedules::Objective::kPeriod}},
                                   [&options](schedules::Objective to) { options.objective = to; });
  add_parsed(app, {"--time-limit", "end the search after this time, e.g. 60s (default 10s)"},
             [&options](const std::string& text) { options.time_limit = parse_duration(text); });
  app.add_option("--effort", options.effort,
                 "end the search after timing this many ops, at any speed, instead of --time-limit "
                 "(10000000 stand for 1s)")
      ->check(InRange(std::int64_t{1}, std::int64_t{1} << 50));
  app.add_option("--seed", options.seed, "seed of the search (default 1)")->type_name("N");
}

/// The flags that expect_searchable() refuses, and those that have no effect without them.
void hide_refused_flags(CommandFlags& app) {
  app.hide({"--slices", "--moe-overlap", "--microbatch-group-size", "--in-flight", "--fsdp",
            "--replicas", "--profile", "--recompute", "--recompute-modules", "--recompute-method",
            "--recompute-num-layers", "--offload", "--network", "--p2p-mode", "--optimizer",
            "--grad-reduction", "--lengths", "--parts", "--inject"});
  app.hide({"--lowering", "--overlap", "--r", "--r-selective", "--copy", "--optimizer-step",
            "--reduce-grad", "--unshard", "--norm", "--ranks-per-host-link", "--saved-fraction"});
}

void expect_searchable(const PredictOptions& flags) {
  const auto refuse = [](bool given, const char* flag, const char* why) {
    if (given) throw Error(fmt::format("{}: {}; leave it out", flag, why));
  };
  const ShapeOptions& shape = flags.shape;
  refuse(shape.slices.value_or(1) > 1, "--slices", "a search does not slice sequences");
  refuse(shape.moe_overlap, "--moe-overlap", "a search chooses the order itself");
  refuse(shape.group_size.has_value(), "--microbatch-group-size",
         "a search chooses the order itself");
  refuse(shape.in_flight.has_value(), "--in-flight", "a search chooses the order itself");
  refuse(shape.sharded, "--fsdp", "a search does not gather parameters");
  refuse(!shape.replicas.empty(), "--replicas", "a search has one rank for every stage");
  refuse(shape.profile != Profile::kNone, "--profile", "a search is bound to no framework's rules");
  refuse(!flags.moves.recompute.empty(), "--recompute",
         "a search keeps all activations until the backward");
  refuse(flags.model.recompute_method.has_value(), "--recompute-method",
         "a search keeps all activations until the backward");
  refuse(flags.model.recompute_layers.has_value(), "--recompute-num-layers",
         "a search keeps all activations until the backward");
  refuse(flags.moves.offload.has_value(), "--offload",
         "a search keeps all activations until the backward");
  refuse(flags.cost.network.has_value(), "--network",
         "a search counts messages as delays; simulate the schedule that it saves on that network");
  refuse(flags.cost.lower.mode != P2pMode::kDataflow, "--p2p-mode",
         "a search counts messages as delays; simulate the schedule that it saves in that mode");
  refuse(
      flags.cost.lower.update.any(), "--optimizer and --grad-reduction",
      "a search ends with the gradients; simulate the schedule that it saves with the step's end");
  refuse(!flags.model.lengths_file.empty(), "--lengths",
         "a search needs costs that all micro-batches share; simulate the schedule that it saves");
  if (flags.model.parts)
    throw Error(
        "--parts: a search has no overlapped pairs; leave it out, and give it to `simulate` with "
        "the schedule that the search saves");
  refuse(!flags.injections.empty(), "--inject",
         "a search ignores faults; simulate the schedule that it saves with them");
}

const char* name_objective(schedules::Objective objective) {
  switch (objective) {
    case schedules::Objective::kMakespan: return "makespan";
    case schedules::Objective::kSpan: return "span";
    case schedules::Objective::kPeriod: return "period";
  }
  return "";
}

/// States what bounded a search that proved nothing: "within the limit of 5 ms".
std::string ending(const SearchOptions& options) {
  if (is_interrupted()) return "stopped by Ctrl-C";
  if (options.effort)
    return fmt::format("within the limit of {}", counted(*options.effort, "timed op"));
  return "within the limit of " + to_text(options.time_limit.value_or(kTimeLimit));
}

bool has_cap(const SearchOptions& options) {
  const UniformMemory& memory = options.inputs.config().memory;
  return !memory.cap.empty() || !memory.cap_bytes.empty();
}

/// The orders that were searched: another placement of the stages may have a better one.
std::string describe_placement(schedules::PlacementChoice placement) {
  switch (placement) {
    case schedules::PlacementChoice::kLinear: return "with one stage per rank ";
    case schedules::PlacementChoice::kInterleaved: return "of interleaved stages ";
    case schedules::PlacementChoice::kV: return "with stages in a V ";
    case schedules::PlacementChoice::kWave: return "with stages in waves ";
    case schedules::PlacementChoice::kFree: return "";
  }
  return "";
}

/// States what the search proved about the value.
std::string claim(const schedules::FoundSchedule& found, const SearchOptions& options) {
  std::string limits = has_cap(options)               ? "within the cap"
                       : options.inputs.files().model ? "within the devices' memory"
                                                      : "without a memory cap";
  limits = describe_placement(options.placement) + limits;
  const std::optional<CostTable>& table = options.inputs.files().costs;
  if (table && shortens_pairs(*table)) limits += ", without overlapped pairs,";
  if (found.is_optimal()) return fmt::format("proved optimal: no order {} is better", limits);
  return fmt::format("not proved optimal: no order {} is below {}, gap {}, {}", limits,
                     to_text(found.bound), traces::format_percent(found.gap()), ending(options));
}

std::string verdict(const schedules::FoundSchedule& found, const SearchOptions& options) {
  const bool of_model = options.inputs.files().model.has_value();
  return fmt::format("search       {} {}, {}\n", name_objective(options.objective),
                     to_text(found.value), claim(found, options)) +
         (of_model || has_cap(options) ? "             (the lower bound below ignores the cap)\n"
                                       : "") +
         (of_model
              ? "             (a search ends with the gradients; simulate the schedule that it "
                "saves\n             with the optimizer's part of the step)\n"
              : "");
}

void write_claim_json(traces::JsonWriter& json, const schedules::FoundSchedule& found,
                      const SearchOptions& options) {
  const schedules::Objective objective = options.objective;
  json.line(1)
      .member("objective", name_objective(objective))
      .line(1)
      .member("value_ns", found.value);
  json.line(1).member("bound_ns", found.bound).line(1).member("claim", claim(found, options));
  json.line(1).member("proved_optimal", found.is_optimal()).line(1).member("gap", found.gap());
  if (objective == schedules::Objective::kPeriod) json.line(1).member("period_ns", found.value);
}

/// The numbers of the step, and those of the search by their names in json.
Metrics collect_search_metrics(const schedules::FoundSchedule& found, const TimedStep& step) {
  Metrics metrics = collect_step_metrics(step);
  metrics["value_ns"] = static_cast<double>(found.value);
  metrics["bound_ns"] = static_cast<double>(found.bound);
  metrics["gap"] = found.gap();
  return metrics;
}

std::string print_found(const schedules::FoundSchedule& found, const TimedStep& step,
                        const SearchOptions& options, OutputFormat format) {
  if (format == OutputFormat::kJson)
    return traces::write_report_json(
        step.report, step.program, step.timeline,
        [&](traces::JsonWriter& json) { write_claim_json(json, found, options); });
  if (format == OutputFormat::kCsv) return traces::write_report_csv(step.report);
  const traces::DrawOptions draw = detect_draw_options();
  return name_flags(traces::draw_timeline(step.record(), draw)) + "\n" + verdict(found, options) +
         name_flags(traces::write_text_report(step.record(), draw));
}

std::string native(const Schedule& schedule) {
  return Registry<traces::ScheduleFormat>::instance().find("native")->write(schedule);
}

void expect_native(const std::string& path) {
  for (const char* other : {".csv", ".dot", ".txt", ".goal"})
    if (path.ends_with(other))
      throw Error(
          fmt::format("-o {}: a search writes our own json; end the name in .json, and "
                      "'bubblescope convert FILE.json --to FORMAT' makes the others of it",
                      path));
}

/// Drops the replicas of a cost file, and says so: a search counts one pipeline, whose stages take
/// the means over them.
PredictInputs count_one_pipeline(const PredictInputs& inputs) {
  InputFiles files = inputs.files();
  if (!files.costs || files.costs->replicas.empty()) return inputs;
  files.costs->replicas.clear();
  print_message(
      "bubblescope: {} has replicas, and a search counts one pipeline with the times of `stages`; "
      "'simulate' predicts the order for each from the schedule file that -o writes\n",
      inputs.flags().cost.file);
  return PredictInputs(inputs.flags(), std::move(files));
}

}  // namespace

int run_search(const Arguments& arguments) {
  CommandFlags app{
      "Find a schedule for given costs and memory, with a bound on what any could reach",
      "bubblescope search"};
  SearchOptions options;
  PredictOptions flags;
  OutputFormat format = OutputFormat::kText;
  ExportOptions exports;
  std::vector<std::string> conditions;
  std::optional<std::string> output;
  add_predict_options(app, flags);
  add_model_options(app, flags.model);
  add_search_options(app, options);
  add_format_option(app, format, {OutputFormat::kText, OutputFormat::kJson, OutputFormat::kCsv});
  add_export_options(app, exports);
  app.add_option("-o,--output", output,
                 "write the schedule, as our own json; - instead of a report")
      ->type_name("FILE");
  add_gate_option(app, conditions);
  hide_refused_flags(app);
  app.footer(kSearchExample);
  if (!app.parse(arguments)) return 0;
  warn_without_model(app, flags.model);
  find_unstated_defaults(app, flags);
  const std::vector<Condition> gate = parse_conditions(conditions);
  check_export_paths(exports, format != OutputFormat::kText || output == "-");
  if (options.effort && options.time_limit)
    throw Error("--effort: a search has this or --time-limit; leave one of them out");
  expect_searchable(flags);
  // A model's step also ends with the gradients.
  flags.cost.end = {OptimizerMode::kNone, GradReduction::kNone};
  flags.model.tries_splits = false;
  if (output) expect_native(*output);
  options.inputs = count_one_pipeline(read_inputs(std::move(flags), {}));
  const InterruptCatcher catcher;  // the report says whether it caught Ctrl-C
  const auto [found, step] = search_and_predict(options);
  const PredictedOps ops{&step.schedule.get(), &step.program};
  warn_of_unused_flags(options.inputs, std::span(&ops, 1), Hints::kNone);
  if (step.models.placed)
    print_message(
        "bubblescope: the step of a search ends with its gradients; 'bubblescope simulate' of the "
        "schedule that -o writes adds their reduction and the update of the weights\n");
  if (step.models.placed)
    report_model_notes(*step.models.placed, step.report, options.inputs.flags().model);
  const Metrics metrics = collect_search_metrics(found, step);
  expect_known(gate, metrics);
  write_exports(step, exports, format_command_line("search", arguments));
  if (output) write_and_report(*output, native(found.schedule));
  if (output != "-") print_result(print_found(found, step, options, format), format);
  return report_failures(gate, metrics) ? 1 : 0;
}

}  // namespace bubblescope::tools
