// Implements compare, which shows predictions side by side.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/number.h"
#include "sim/ir/op_kinds.h"
#include "sim/model/known_errors.h"
#include "sim/predict/memory_caps.h"
#include "sim/predict/model_fit.h"
#include "tools/command_line.h"
#include "tools/commands/compare_backend.h"
#include "tools/commands/compare_formats.h"
#include "tools/commands/compare_gate.h"
#include "tools/commands/compare_noise.h"
#include "tools/commands/compare_rows.h"
#include "tools/commands/compare_table.h"
#include "tools/commands/exports.h"
#include "tools/flags/arrival_options.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/field_names.h"
#include "tools/flags/output_format.h"
#include "tools/flags/schedule_list.h"
#include "tools/flags/shared_sizes.h"
#include "tools/flags/unstated_defaults.h"
#include "tools/flags/words.h"
#include "tools/inputs/assumed_defaults.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/load_schedule.h"
#include "tools/inputs/model_report.h"
#include "tools/inputs/resolve_model.h"
#include "tools/inputs/unused_flags.h"
#include "tools/print.h"
#include "tools/terminal.h"
#include "traces/reports/text_report.h"
#include "traces/text/fit_table.h"
#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kCompareExample =
    "example: what does splitting the backward buy, and what does it cost in memory?\n"
    "  bubblescope compare gpipe,1f1b,zb-h1,zb-h2 --pp 8 -m 32 --f 10 --i 10 --w 9 --p2p 0.4\n"
    "'all' stands for every schedule that trains and accepts the shape, also beside a file.\n"
    "A file states its shape, and names get the same; fail where it is over 2 % above the best:\n"
    "  bubblescope compare mine.csv,1f1b,zb-h1 --f 10 --i 10 --w 9 --fail-if "
    "'mine.csv:vs_best>2%'\n"
    "With --backend every schedule is also run, and its prediction judged:\n"
    "  bubblescope compare 1f1b,zb-h1 --shapes 4x8,8x32 --f 10 --i 10 --w 9 --backend cpu\n";

/// Compares schedules without flushes by their period, because they have no separate steps.
std::string periods_text(const std::vector<ComparedRow>& rows) {
  std::string text;
  for (const ComparedRow& row : rows) {
    if (!row.step || !row.step->report.period) continue;
    std::int32_t staleness = 0;
    for (const RankReport& rank : row.step->report.ranks)
      if (rank.weights) staleness = std::max(staleness, rank.weights->staleness);
    text += fmt::format("{} does not flush: {} per micro-batch once full, weights up to {} old\n",
                        row.name, to_text(*row.step->report.period), counted(staleness, "update"));
  }
  return text;
}

/// Says how soon forward-only schedules answer micro-batches that arrive.
std::string serving_text(const std::vector<ComparedRow>& rows) {
  std::string text;
  for (const ComparedRow& row : rows) {
    if (!row.step || !row.step->report.serving) continue;
    const ServingReport& serving = *row.step->report.serving;
    text += fmt::format("{}: time to first token p50 {}, p95 {}; {:.4g} micro-batches per second\n",
                        row.name, to_text(serving.first_token_p50),
                        to_text(serving.first_token_p95), serving.microbatches_per_second);
  }
  return text;
}

/// Prints the assumptions, which all rows share, and the schedules whose memory is too small, or
/// would be with Megatron-LM's gradients.
void report_models_notes(const std::vector<ComparedRow>& rows, const ModelOptions& options) {
  bool explain = options.explain;
  bool first = true;
  for (const ComparedRow& row : rows) {
    if (!row.step || !row.step->models.placed) continue;
    const PlacedModel& placed = *row.step->models.placed;
    if (std::exchange(explain, false)) print_assumptions(placed.on);
    if (std::exchange(first, false)) note_heads(placed.on);
    for (const std::string& warning :
         {describe_assumed_gradients(options.unstated, placed, row.step->report),
          describe_memory_problem(placed, row.step->report)})
      if (!warning.empty()) print_message("bubblescope: {}: {}\n", row.name, warning);
  }
}

std::string sensitivities_text(const std::vector<ComparedRow>& rows) {
  std::string text;
  for (const ComparedRow& row : rows)
    if (row.step && row.step->report.sensitivity)
      text += fmt::format("{}: {}", row.name, traces::write_sensitivity_text(row.step->report));
  return text;
}

/// Schedules without backwards have less to do, so they are compared among themselves only.
void warn_of_inference(const std::vector<ComparedRow>& rows) {
  const auto is_training = [](const ComparedRow& row) {
    return row.step && trains(*row.step->schedule);
  };
  if (std::none_of(rows.begin(), rows.end(), is_training)) return;
  for (const ComparedRow& row : rows)
    if (row.step && !trains(*row.step->schedule))
      print_message(
          "bubblescope: {} has no backwards; 'vs best' compares it with schedules that do not "
          "train either\n",
          row.name);
}

/// Warns of flags that changed nothing in any row.
void warn_of_unused(const std::vector<ComparedRow>& rows, const std::vector<std::string>& names,
                    const PredictInputs& inputs) {
  std::vector<PredictedOps> steps;
  for (const ComparedRow& row : rows)
    if (row.step) steps.push_back({&row.step->schedule.get(), &row.step->program});
  warn_of_unused_flags(inputs, steps);
  warn_of_unused_shape(inputs.flags(), names);
}

/// Costs that hold for every stage make the model of a schedule with more stages larger.
void warn_of_model_sizes(const std::vector<ComparedRow>& rows, const PredictInputs& inputs) {
  const std::optional<CostTable>& costs = inputs.files().costs;
  if (!costs || !costs->same_stages || costs->divisible || !costs->stage_kinds.empty()) return;
  std::map<std::int32_t, std::string> by_stages;
  for (const ComparedRow& row : rows)
    if (row.step) by_stages.emplace(row.step->schedule->stages_per_pipeline(), row.name);
  if (by_stages.size() < 2) return;
  print_message(
      "bubblescope: the costs hold for each stage, so {} with {} trains a smaller model than {} "
      "with {}; give 'stage_kinds', or costs that are 'divisible'\n",
      by_stages.begin()->second, counted(by_stages.begin()->first, "stage"),
      by_stages.rbegin()->second, by_stages.rbegin()->first);
}

/// Says what "vs best" compares where shapes differ.
std::string describe_shapes(const std::vector<ComparedRow>& rows) {
  if (!differ_in_microbatches(rows)) return "";
  const auto uses_model = [](const ComparedRow& row) { return find_row_fit(row).has_value(); };
  std::set<std::int32_t> ranks;
  for (const ComparedRow& row : rows)
    if (row.step) ranks.insert(row.step->schedule->shape.ranks);
  const bool is_larger = ranks.size() > 1 && std::none_of(rows.begin(), rows.end(), uses_model);
  return std::string(
             "\nvs best: in time per micro-batch (per mb), because steps have different "
             "numbers of them") +
         (is_larger ? "; costs are per rank, so more ranks train a larger model\n" : "\n");
}

/// Names the schedules whose predictions are judged by published runs of others alone.
std::string describe_unpublished(const std::vector<ComparedRow>& rows) {
  std::vector<std::string> names;
  for (const ComparedRow& row : rows) {
    const bool has_model = row.step && row.step->models.placed;
    if (!has_model) continue;
    const ModelOnDevices& on = row.step->models.placed->on;
    const bool is_named = std::find(names.begin(), names.end(), row.schedule) != names.end();
    if (!is_named && !find_nearest_errors(on).unpublished_schedule.empty())
      names.push_back(row.schedule);
  }
  if (names.empty()) return "";
  return fmt::format(
      "\nno published run had the schedule{} {}, so that nothing says by how much {} may err\n",
      names.size() == 1 ? "" : "s", traces::list_words(names),
      names.size() == 1 ? "its prediction" : "their predictions");
}

void print_text(const std::vector<ComparedRow>& rows, const traces::DrawOptions& draw) {
  const std::optional<int> width = draw.fit ? std::optional(draw.width) : std::nullopt;
  const traces::FittedTable table = traces::draw_table(columns_of_rows(rows), width);
  std::string text = table.text + name_flags(traces::describe_hidden(table.hidden));
  for (const ComparedRow& row : rows)
    if (!row.refusal.empty()) text += fmt::format("{:<16}  {}\n", row.name, row.refusal);
  text += periods_text(rows) + serving_text(rows) + sensitivities_text(rows) +
          write_win_probability_text(collect_reports(rows));
  text += describe_shapes(rows) + describe_unpublished(rows);
  text += describe_columns(rows);
  print_fitted(text, draw.fit);
}

/// How the rows are printed, and what is written besides them.
struct Output {
  OutputFormat format = OutputFormat::kText;
  ExportOptions exports;
  std::string command;
  std::optional<int> columns = {};  ///< that tables must fit
  std::string results;              ///< file for the results of --backend as they come
  std::vector<RowCondition> gate = {};
};

std::vector<NamedStep> steps_of(const std::vector<ComparedRow>& rows) {
  std::vector<NamedStep> steps;
  for (const ComparedRow& row : rows)
    if (row.step) steps.push_back({row.name, *row.step});
  return steps;
}

/// Lists each measured step after its prediction.
std::vector<NamedStep> steps_of(const std::vector<Comparison>& comparisons) {
  std::vector<NamedStep> steps;
  for (const Comparison& comparison : comparisons) {
    steps.push_back({comparison.label + " predicted", comparison.predicted});
    steps.push_back({comparison.label + " measured", comparison.measured.step, steps.size() - 1});
  }
  return steps;
}

/// Compares predicted and measured steps, for the rows that have a prediction.
int compare_with_measured(std::vector<ComparedRow> rows, const Output& output,
                          const PredictInputs& inputs, const RunOptions& run,
                          const CommandFlags& app) {
  BackendSession session(run);
  if (session.processes().is_coordinator())
    warn_of_unused_run_options(app, run, inputs.flags().cost.any_uniform);
  const RunContext context{inputs, run, session.processes()};
  std::vector<GateRow> gated = collect_unmeasured_rows(rows);
  expect_known(output.gate, gated);
  const std::vector<Comparison> comparisons =
      compare_rows(std::move(rows), {context, output.results});
  if (comparisons.empty()) return 1;
  if (!session.start_reporting_or_wait()) return 0;
  write_exports(steps_of(comparisons), output.exports, output.command);
  if (output.format == OutputFormat::kJson)
    print_output("{}", write_comparison_json(comparisons));
  else if (output.format == OutputFormat::kCsv)
    print_output("{}", write_comparison_csv(comparisons));
  else
    print_fitted(write_comparison_text(comparisons, output.columns), output.columns.has_value());
  const bool failed = report_failures(output.gate, measure_rows(std::move(gated), comparisons));
  return gradients_match(comparisons) && !failed ? 0 : 1;
}

/// Throws Error where schedules by name have no shape.
void expect_shape(const std::string& list, const PredictOptions& options) {
  const std::vector<std::string> names = names_of(list);
  if (has_open_sizes(options) && !std::all_of(names.begin(), names.end(), is_schedule_file))
    throw Error("compare needs --pp and -m, or --shapes; for example 'bubblescope compare " +
                join(list_schedules(list), ",") + " --pp 4 -m 8'");
}

struct CompareOptions {
  std::string list;
  std::vector<std::string> shapes;
  std::vector<std::string> conditions;
  PredictOptions predict;
  RunOptions run;
  SharedSizes sizes;
  Output output;
  bool wide = false;  ///< tables have all columns
};

void add_compare_options(CommandFlags& app, CompareOptions& options) {
  app.add_option("SCHEDULES", options.list,
                 "names or files, separated by commas; 'all' for every schedule")
      ->required();
  app.add_option("--shapes", options.shapes,
                 "several shapes, PPxM or PPxMxVPP each, instead of --pp, -m and --vpp")
      ->delimiter(',')
      ->type_name("SHAPE");
  add_predict_options(app, options.predict);
  add_noise_options(app, options.predict.noise);
  add_arrival_options(app, options.predict);
  add_loss_option(app, options.predict);
  add_held_memory_options(app, options.predict);
  add_model_and_run_options(app, options.predict.model, options.run, options.sizes);
  app.add_option("--results", options.output.results,
                 "with --backend: a line of json per schedule, as soon as it is measured")
      ->type_name("FILE");
  add_format_option(app, options.output.format,
                    {OutputFormat::kText, OutputFormat::kJson, OutputFormat::kCsv});
  add_export_options(app, options.output.exports);
  add_row_gate_option(app, options.conditions);
  app.add_flag("--wide", options.wide,
               "all columns of tables, also where the terminal is narrower");
  app.footer(kCompareExample);
}

/// Warns of flags without effect, and refuses what cannot be compared or written.
void check_options(const CommandFlags& app, const CompareOptions& options) {
  const bool predicts_only = options.run.backend.empty();
  const bool is_one = names_of(options.list).size() == 1 && options.shapes.empty();
  const Output& output = options.output;
  check_export_paths(output.exports, output.format != OutputFormat::kText,
                     is_one && predicts_only ? Steps::kOne : Steps::kSeveral);
  if (predicts_only && !output.results.empty())
    throw Error("--results is written while schedules run; add --backend");
  expect_folder(output.results);
  warn_without_model(app, options.predict.model);
  warn_of_unused_sizes(app, options.predict.model, options.run);
  if (predicts_only) warn_of_unused_run_options(app, options.run, options.predict.cost.any_uniform);
  expect_sizes_once(options.shapes, options.predict.shape);
  if (!predicts_only) expect_runnable(options.predict);
}

void print_rows(const std::vector<ComparedRow>& rows, const CompareOptions& options) {
  traces::DrawOptions draw = detect_draw_options();
  draw.fit = draw.fit && !options.wide;
  if (options.output.format == OutputFormat::kJson)
    print_output("{}", write_rows_json(rows));
  else if (options.output.format == OutputFormat::kCsv)
    print_output("{}", write_rows_csv(rows));
  else
    print_text(rows, draw);
}

}  // namespace

int run_compare(const Arguments& arguments) {
  CommandFlags app{"Several schedules side by side, on one set of costs", "bubblescope compare"};
  CompareOptions options;
  add_compare_options(app, options);
  if (!app.parse(arguments)) return 0;
  Output& output = options.output;
  output.command = format_command_line("compare", arguments);
  const traces::DrawOptions terminal = detect_draw_options();
  if (terminal.fit && !options.wide) output.columns = terminal.width;
  if (!options.run.backend.empty()) choose_measured_work(app, options.run);
  apply_shared_sizes(options.sizes, options.predict.model, options.run);
  find_unstated_defaults(app, options.predict);
  output.gate = parse_row_conditions(options.conditions);
  if (options.shapes.empty()) {
    options.predict.shape = complete_shape(names_of(options.list), options.predict);
    expect_shape(options.list, options.predict);
  }
  check_options(app, options);
  const bool shows_ops = !options.run.backend.empty() || writes_files(output.exports);
  if (!shows_ops && output.format != OutputFormat::kJson) options.predict.slack = Slack::kSkip;
  const PredictInputs inputs = read_inputs(std::move(options.predict), names_of(options.list));
  warn_without_noise(app, inputs.flags().noise, noise_of_costs(inputs));
  std::vector<ComparedRow> rows = predict_rows(options.list, options.shapes, inputs,
                                               shows_ops ? RowDetail::kOps : RowDetail::kReport);
  report_models_notes(rows, inputs.flags().model);
  warn_of_inference(rows);
  warn_of_model_sizes(rows, inputs);
  warn_of_unused(rows, names_of(options.list), inputs);
  warn_of_unused_chunks(options.shapes, names_of(options.list));
  if (output.format != OutputFormat::kJson)
    warn_of_unused_unit(inputs.flags().memory, "activations are shown in micro-batches");
  const int status = status_of(rows);
  if (!options.run.backend.empty())
    return std::max(status,
                    compare_with_measured(std::move(rows), output, inputs, options.run, app));
  const std::vector<GateRow> gated = collect_gate_rows(rows);
  expect_known(output.gate, gated);
  warn_of_noise(output.gate, rows);
  write_exports(steps_of(rows), output.exports, output.command);
  print_rows(rows, options);
  return report_failures(output.gate, gated) ? std::max(status, 1) : status;
}

}  // namespace bubblescope::tools
