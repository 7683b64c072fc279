// diff: compares two reports or timelines by their values and op by op; a gate for CI.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/analysis/analyze.h"
#include "sim/analysis/timeline_difference.h"
#include "sim/ir/counted.h"
#include "tools/command_line.h"
#include "tools/commands/exports.h"
#include "tools/commands/gate.h"
#include "tools/commands/job_difference.h"
#include "tools/commands/job_table.h"
#include "tools/errors.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/output_format.h"
#include "tools/print.h"
#include "tools/terminal.h"
#include "traces/files/file.h"
#include "traces/files/is_schedule.h"
#include "traces/files/job_summary.h"
#include "traces/json/json_writer.h"
#include "traces/reports/read_report.h"
#include "traces/reports/read_report_csv.h"
#include "traces/timelines/job_summary_json.h"
#include "traces/timelines/timeline_file.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kDiffExample =
    "example: does the new schedule cost more than the old one?\n"
    "  bubblescope simulate 1f1b  --pp 4 -m 8 --save old.json\n"
    "  bubblescope simulate zb-h1 --pp 4 -m 8 --save new.json\n"
    "  bubblescope diff old.json new.json --fail-if 'makespan_ns_change>0.01'\n"
    "A and B are what --save wrote, or what --format json or csv printed. A\n"
    "condition can name every number of B as in the table, or with the suffix\n"
    "_change its relative change against A.\n";
constexpr std::size_t kShownShifts = 10;

/// One of the two files: its values, and its step if it has one.
struct Side {
  Metrics metrics;
  std::optional<TimedStep> step;
  std::optional<traces::JobSummary> job;  ///< of a run whose steps were measured
};

Metrics load_report(const std::string& text, const std::string& path) {
  std::optional<Metrics> numbers = traces::read_csv_report_numbers(text, path);
  if (!numbers && traces::is_schedule(text))
    throw Error(path +
                " is a schedule and has no times; give what 'bubblescope simulate --save' writes");
  if (!numbers) numbers = traces::read_report_numbers(text, path);
  if (!numbers)
    throw Error(path +
                ": /format: this is neither a report (--format json, csv) nor a timeline (--save)");
  return std::move(*numbers);
}

Side load_side(const std::string& path) {
  std::error_code unreadable;
  if (std::filesystem::is_directory(path, unreadable))
    throw Error(path + " is a folder; save its step with 'bubblescope analyze " + path +
                " --save FILE', and diff that file");
  const std::string text = traces::read_file(path);
  if (traces::is_timeline(text)) {
    traces::TimelineFile file = traces::parse_timeline(text, path);
    if (!file.timeline.breakdown.empty())
      throw Error(Fault::kProblem,
                  path + " is a step that did not complete: " + file.timeline.breakdown);
    TimedStep step{std::move(file.schedule)};
    step.program = std::move(file.program);
    step.timeline = std::move(file.timeline);
    step.report = analyze(step.schedule, step.program, step.timeline);
    step.job = file.job;
    Metrics metrics = collect_metrics(step.report);
    return {std::move(metrics), std::move(step), std::move(file.job)};
  }
  Metrics metrics = load_report(text, path);
  const bool is_json = text.find_first_not_of(" \t\r\n") == text.find('{');
  return {std::move(metrics), {}, is_json ? traces::parse_job_summary(text, path) : std::nullopt};
}

/// A side with the numbers of its job, by the names that conditions on `analyze` have.
Side load_job(const std::string& path) {
  Side side = load_side(path);
  if (side.job) side.metrics.merge(collect_summary_metrics(*side.job));
  return side;
}

double change(double before, double after) {
  if (before == after) return 0;
  return before == 0 ? std::copysign(INFINITY, after) : (after - before) / std::abs(before);
}

/// Collects everything that a condition can name.
Metrics comparable(const Metrics& before, const Metrics& after) {
  Metrics metrics = after;
  for (const auto& [name, value] : after)
    if (before.contains(name)) metrics[name + "_change"] = change(before.at(name), value);
  return metrics;
}

void add_op_metrics(const TimelineDifference& difference, Metrics& metrics) {
  if (difference.makespan_a == 0) return;
  const auto step = static_cast<double>(difference.makespan_a);
  for (const auto& [name, percent] : {std::pair("p50", std::size_t{50}), {"p95", 95}, {"max", 100}})
    metrics[std::string("op_start_") + name] =
        static_cast<double>(compute_start_shift_quantile(difference, percent)) / step;
}

/// The numbers of a side's shape by the names that reports give them; empty where it states none.
Metrics shape_numbers(const Side& side) {
  if (side.step) {
    const Shape& shape = side.step->schedule->shape;
    return {{"pp", shape.ranks},
            {"vpp", shape.chunks},
            {"m", shape.microbatches},
            {"slices", shape.slices}};
  }
  Metrics numbers;
  for (const auto& [key, name] :
       {std::pair("pp", "pp"), {"vpp", "vpp"}, {"microbatches", "m"}, {"slices", "slices"}})
    if (const auto found = side.metrics.find(key); found != side.metrics.end())
      numbers[name] = found->second;
  return numbers;
}

/// Says in what the shapes of the two steps differ: changes between such steps are not only those
/// of their schedules and costs. Empty where they do not differ, or are not known.
std::string describe_shapes(const Side& a, const Side& b) {
  const Metrics shape_b = shape_numbers(b);
  std::vector<std::string> differences;
  for (const auto& [name, number] : shape_numbers(a))
    if (const auto other = shape_b.find(name); other != shape_b.end() && other->second != number)
      differences.push_back(fmt::format("{} {} and {}", name, number, other->second));
  if (differences.empty()) return {};
  return fmt::format(
      "A and B are steps of different shapes ({}): their times are of different work, and their "
      "ops of different stages or micro-batches",
      fmt::join(differences, ", "));
}

/// A change in percent; none can be named of a number that was 0.
std::string describe_change(double before, double after) {
  const double relative = change(before, after);
  return std::isfinite(relative) ? fmt::format("{:+.3f}%", 100 * relative) : "from 0";
}

void print_metrics(const Metrics& before, const Metrics& after) {
  print_folded("{:<20}{:>18}{:>18}{:>12}\n", "", "A", "B", "change");
  for (const auto& [name, value] : after) {
    const auto found = before.find(name);
    if (found == before.end() || std::isnan(found->second) || std::isnan(value)) continue;
    if (name.starts_with("cause_")) continue;  // which have a table of their own
    print_folded("{:<20}{:>18.10g}{:>18.10g}{:>12}\n", name, found->second, value,
                 describe_change(found->second, value));
  }
}

/// Names the numbers that only one side has, which are not compared.
void print_numbers_of_one(const Metrics& before, const Metrics& after) {
  for (const auto& [name, own, other] :
       {std::tuple("A", &before, &after), std::tuple("B", &after, &before)}) {
    std::vector<std::string> alone;
    for (const auto& [metric, value] : *own)
      if (!other->contains(metric) && !metric.starts_with("cause_")) alone.push_back(metric);
    if (!alone.empty())
      print_folded("not compared, because only {} has them: {}\n", name, fmt::join(alone, ", "));
  }
}

void print_op_lists(const TimelineDifference& difference) {
  for (const auto& [name, ops] :
       {std::pair("A", &difference.only_in_a), std::pair("B", &difference.only_in_b)}) {
    if (ops->empty()) continue;
    std::string listed;
    for (std::size_t at = 0; at < std::min(ops->size(), kShownShifts); ++at)
      listed += fmt::format(" {} (rank {})", to_string((*ops)[at].op), (*ops)[at].rank);
    print_folded("{} only in {}:{}{}\n", counted(std::ssize(*ops), "op"), name, listed,
                 ops->size() > kShownShifts ? " ..." : "");
  }
}

void print_ops(const TimelineDifference& difference) {
  print_folded(
      "\n{} in both; their starts differ by at most {} for half of them, {} for 95 %, {} for "
      "all\n",
      counted(std::ssize(difference.shifts), "op"),
      to_text(compute_start_shift_quantile(difference, 50)),
      to_text(compute_start_shift_quantile(difference, 95)),
      to_text(compute_start_shift_quantile(difference, 100)));
  print_op_lists(difference);
  const std::optional<OpShift> first = find_first_divergence(difference, 0);
  if (!first) return;
  print_folded("first divergence: {} on rank {}, {} into the step\n", to_string(first->op),
               first->rank, to_text(first->start));
  std::vector<OpShift> shifts = difference.shifts;
  std::stable_sort(shifts.begin(), shifts.end(), [](const OpShift& a, const OpShift& b) {
    return std::abs(a.start_shift) > std::abs(b.start_shift);
  });
  shifts.resize(std::min(shifts.size(), kShownShifts));
  print_folded("\n{:<8}{:<12}{:>16}{:>16}{:>16}\n", "rank", "op", "start in A", "starts later",
               "takes longer");
  for (const OpShift& shift : shifts)
    print_folded("{:<8}{:<12}{:>16}{:>16}{:>16}\n", shift.rank, to_string(shift.op),
                 to_text(shift.start), to_text(shift.start_shift), to_text(shift.duration_shift));
}

void write_metrics(traces::JsonWriter& json, const char* name, const Metrics& metrics) {
  json.key(name).begin_object();
  for (const auto& [metric, value] : metrics) {
    json.escaped_key(metric);
    std::isfinite(value) ? json.value(value) : json.null();
  }
  json.end_object();
}

void write_ops(traces::JsonWriter& json, const TimelineDifference& difference) {
  json.key("ops").begin_array();
  for (const OpShift& shift : difference.shifts) {
    if (shift.start_shift == 0 && shift.duration_shift == 0) continue;
    json.begin_object().member("rank", shift.rank).member("op", to_string(shift.op));
    json.member("start_shift_ns", shift.start_shift);
    json.member("duration_shift_ns", shift.duration_shift).end_object();
  }
  json.end_array().member("only_in_a", difference.only_in_a.size());
  json.member("only_in_b", difference.only_in_b.size());
}

void print_json(const Side& a, const Side& b, const Metrics& metrics,
                const std::optional<TimelineDifference>& difference) {
  std::string text;
  traces::JsonWriter json(text, {.indented = true, .ascii = true});
  json.begin_object().member("format", "bubblescope-diff/1");
  write_metrics(json, "a", a.metrics);
  write_metrics(json, "b", b.metrics);
  write_metrics(json, "metrics", metrics);
  if (difference) write_ops(json, *difference);
  if (a.job && b.job) write_job_difference_json(json, compare_jobs(*a.job, *b.job));
  json.end_object();
  print_output("{}\n", text);
}

/// Says whether a side can be trusted, and of what its numbers are.
std::string describe_job(const char* name, const Side& side) {
  if (!side.job)
    return fmt::format("{} has no causes or workers, because it holds a single step\n", name);
  std::string text;
  const traces::JobSummary& job = *side.job;
  if (!job.why.empty())
    text = fmt::format("{} is {}: {}\n", name,
                       is_trusted(job) ? "trusted with reservations" : "not trusted",
                       fmt::join(job.why, "; "));
  if (!side.step || job.iterations == 1) return text;
  return text + fmt::format(
                    "{} is the median of {}; step_ns, replay_error, slowdown, causes and workers "
                    "cover all of them\n",
                    name, counted(job.iterations, "iteration"));
}

/// The changes from A's run to B's; empty where one of them is not a run.
std::vector<traces::ChangeTable> find_changes(const Side& a, const Side& b) {
  if (!a.job || !b.job) return {};
  return describe_job_difference(compare_jobs(*a.job, *b.job), *a.job, *b.job);
}

void print_jobs(const Side& a, const Side& b) {
  if (!a.job && !b.job) return;
  print_folded("\n{}{}{}", describe_job("A", a), describe_job("B", b),
               write_changes(find_changes(a, b)));
}

/// Reports conditions that hold. A side that is not trusted, or a number that is not known, fails
/// as well.
bool fails_gate(const std::vector<Condition>& gate, const Metrics& metrics, const Side& a,
                const Side& b) {
  if (gate.empty()) return false;
  const auto fail = [](const std::string& why) {
    print_error("--fail-if cannot be evaluated: " + why);
    return true;
  };
  for (const auto& [name, side] : {std::pair("A", &a), std::pair("B", &b)})
    if (side->job && !is_trusted(*side->job))
      return fail(fmt::format("{} is not trusted: {}", name, fmt::join(side->job->why, "; ")));
  if (const Condition* const unknown = find_unknown(gate, metrics))
    return fail(unknown->metric + " is not known of both");
  return report_failures(gate, metrics);
}

/// Writes B below A, which takes the place of a measured step's prediction.
void write_sides(const Side& a, const Side& b, const ExportOptions& exports,
                 const std::string& command) {
  if (a.step && b.step)
    return write_exports({{"A", *a.step}, {"B", *b.step, 0}}, exports, command,
                         {.changes = find_changes(a, b)});
  for (const auto& [name, path] : exports)
    if (path)
      throw Error("--" + name +
                  " shows steps, and a report has none; give two files of --save instead");
}

}  // namespace

int run_diff(const Arguments& arguments) {
  CommandFlags app{"Two reports or timelines, number by number and op by op; a gate for CI",
                   "bubblescope diff"};
  std::string path_a;
  std::string path_b;
  OutputFormat format = OutputFormat::kText;
  std::vector<std::string> conditions;
  ExportOptions exports;
  app.add_option("A", path_a, "a file of --save or --format json or csv, - for stdin")->required();
  app.add_option("B", path_b, "the file to compare with A")->required();
  add_format_option(app, format, {OutputFormat::kText, OutputFormat::kJson});
  add_export_options(app, exports);
  add_gate_option(app, conditions);
  app.footer(kDiffExample);
  if (!app.parse(arguments)) return 0;
  const std::vector<Condition> gate = parse_conditions(conditions);
  check_export_paths(exports, format != OutputFormat::kText, Steps::kSeveral);
  const Side a = load_job(path_a);
  const Side b = load_job(path_b);
  Metrics metrics = comparable(a.metrics, b.metrics);
  std::optional<TimelineDifference> difference;
  if (a.step && b.step) {
    difference =
        compare_timelines(a.step->program, a.step->timeline, b.step->program, b.step->timeline);
    add_op_metrics(*difference, metrics);
  }
  expect_known(gate, metrics);
  const std::string shapes = describe_shapes(a, b);
  if (!shapes.empty() && format != OutputFormat::kText) print_message("bubblescope: {}\n", shapes);
  write_sides(a, b, exports, format_command_line("diff", arguments));
  if (format == OutputFormat::kJson) {
    print_json(a, b, metrics, difference);
  } else {
    if (!shapes.empty()) print_folded("{}\n\n", shapes);
    print_metrics(a.metrics, b.metrics);
    print_numbers_of_one(a.metrics, b.metrics);
    print_jobs(a, b);
    if (difference) print_ops(*difference);
  }
  return fails_gate(gate, metrics, a, b) ? 1 : 0;
}

}  // namespace bubblescope::tools
