// Implements check, which reports whether a schedule is legal, in which message modes it can
// deadlock, and how much memory it needs.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "sim/analysis/memory_curve.h"
#include "sim/analysis/suggest_receives.h"
#include "sim/analysis/suggest_sends.h"
#include "sim/engine/simulate.h"
#include "sim/ir/check_messages.h"
#include "sim/ir/counted.h"
#include "sim/ir/validate.h"
#include "sim/predict/memory_caps.h"
#include "tools/commands/check_lists.h"
#include "tools/commands/check_workload_files.h"
#include "tools/commands/suggestion_json.h"
#include "tools/errors.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/field_names.h"
#include "tools/flags/no_model.h"
#include "tools/flags/output_format.h"
#include "tools/flags/schedule_list.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/load_schedule.h"
#include "tools/inputs/predict.h"
#include "tools/inputs/unused_flags.h"
#include "tools/print.h"
#include "tools/terminal.h"
#include "traces/drawings/drawing.h"
#include "traces/json/json_writer.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kCheckExample =
    "example: check a hand-written PyTorch schedule before a thousand GPUs run it\n"
    "  bubblescope check my_schedule.csv\n"
    "example: the smallest deadlock of receives that are posted late, and what removes it\n"
    "  bubblescope check interleaved --pp 2 -m 2 --lowering deferred --p2p-mode rendezvous "
    "--suggest\n"
    "exit status: 1 if a schedule is not legal, deadlocks in the mode of --p2p-mode (with "
    "--all-modes: in any, or where messages are swapped), or holds more than --cap; also if a "
    "file's own messages hang in every mode that posts them\n";

/// The findings about one schedule. Those that require a run are empty if it cannot run.
struct CheckVerdict {
  std::string name;
  bool forward_only = false;
  Problems problems;
  std::vector<ModeVerdict> modes;
  Problems swapped;  ///< messages that are received in another order than they are sent
  std::optional<std::int32_t> eager_slots;
  std::size_t after_edges = 0;
  std::vector<Peak> peaks;
  Problems over_cap;
  bool has_own_messages = false;
  std::optional<ReceiveSuggestion> suggestion;
  std::optional<SendSuggestion> late_sends;  ///< where no order of receives helps
  std::string suggested_mode;  ///< the mode for which the gain of the suggestion holds

  bool legal() const { return problems.empty(); }
  bool deadlocks_in_any() const {
    const auto blocks = [](const ModeVerdict& one) { return one.deadlock.has_value(); };
    return std::any_of(modes.begin(), modes.end(), blocks);
  }
  /// Returns the mode to fix: the requested one, else the first that deadlocks, else rendezvous.
  P2pMode choose_mode_to_fix(P2pMode asked) const {
    if (asked != P2pMode::kDataflow) return asked;
    for (const ModeVerdict& verdict : modes)
      if (verdict.deadlock) return verdict.mode;
    return P2pMode::kRendezvous;
  }
  /// Whether the messages of a file hang in every mode that posts them.
  bool hangs() const {
    return has_own_messages && !modes.empty() &&
           std::all_of(modes.begin(), modes.end(), [](const ModeVerdict& verdict) {
             return verdict.deadlock || verdict.mode == P2pMode::kDataflow;
           });
  }
  /// Returns the problems of the order, and as a further one that its messages hang.
  Problems all_problems() const {
    Problems all = problems;
    const auto hung = std::find_if(modes.begin(), modes.end(), [](const ModeVerdict& verdict) {
      return verdict.mode != P2pMode::kDataflow;
    });
    if (legal() && hangs() && hung != modes.end())
      all.push_back({{},
                     {},
                     "its messages hang in every mode that posts them: with " +
                         std::string(name_of(kP2pModes, hung->mode)) + ", " +
                         to_string(*hung->deadlock)});
    return all;
  }
  bool deadlocks_in(P2pMode mode) const {
    const auto blocks = [&](const ModeVerdict& one) { return one.mode == mode && one.deadlock; };
    return std::any_of(modes.begin(), modes.end(), blocks);
  }
};

using Loaded = std::variant<ValidSchedule, InvalidSchedule, CheckVerdict>;

/// Loads a schedule. A refused shape counts as a problem of the schedule, not as a failure of
/// check.
Loaded load(const std::string& name, const PredictInputs& inputs) {
  try {
    const PredictOptions& flags = inputs.flags();
    auto loaded = load_schedule(name, inputs, CostUse::kOrderOnly);
    if (auto* const valid = std::get_if<ValidSchedule>(&loaded)) {
      warn_of_posted(name, *valid, flags);
      loaded = check_release(take_turns(std::move(*valid), name, flags.shape), flags.shape);
    }
    return std::visit([](auto checked) -> Loaded { return checked; }, std::move(loaded));
  } catch (const Error& error) {
    if (error.fault() != Fault::kProblem) throw;
    CheckVerdict refused;
    refused.name = name;
    refused.problems = {{{}, {}, name_flags(error.what())}};
    return refused;
  }
}

/// Consumes the Program, because there is memory for only one at a time.
std::vector<Peak> peaks_of(const ValidSchedule& schedule, Program program, const Models& models) {
  return find_peaks(schedule, program, simulate(program, models.costs), models.memory);
}

CheckVerdict check_valid_schedule(const ValidSchedule& schedule, const PredictInputs& inputs,
                                  bool suggest) {
  CheckVerdict verdict;
  verdict.name = schedule->name;
  verdict.forward_only = schedule->forward_only;
  verdict.after_edges = schedule->after.size();
  verdict.has_own_messages = posts_messages(schedule);
  std::variant<Program, Deadlock> lowered = lower(schedule);
  if (const auto* const deadlock = std::get_if<Deadlock>(&lowered)) {
    verdict.problems = {make_deadlock_problem(schedule, *deadlock)};
    // Ops that wait for each other deadlock in every message mode.
    for (const Named<P2pMode>& mode : kP2pModes) verdict.modes.push_back({mode.choice, *deadlock});
    return verdict;
  }
  const LowerOptions& lower_options = inputs.config().lower;
  const Models models = load_models(schedule, inputs);
  verdict.peaks = peaks_of(schedule, std::get<Program>(std::move(lowered)), models);
  verdict.over_cap = name_flags(find_ranks_over_cap(verdict.peaks, models.memory));
  MessageVerdict messages = check_messages(schedule, lower_options);
  verdict.modes = std::move(messages.modes);
  verdict.eager_slots = messages.eager_slots;
  verdict.swapped = std::move(messages.swapped);
  if (suggest) {
    LowerOptions suggested = lower_options;
    suggested.mode = verdict.choose_mode_to_fix(lower_options.mode);
    verdict.suggestion = suggest_receives(schedule, suggested, models.costs);
    if (!verdict.suggestion) verdict.late_sends = suggest_sends(schedule, suggested, models.costs);
    verdict.suggested_mode = to_string(suggested.mode, suggested.eager_slots);
  }
  return verdict;
}

CheckVerdict check_schedule(const Loaded& loaded, const PredictInputs& inputs, bool suggest) {
  if (const auto* valid = std::get_if<ValidSchedule>(&loaded))
    return check_valid_schedule(*valid, inputs, suggest);
  if (const auto* refused = std::get_if<CheckVerdict>(&loaded)) return *refused;
  const auto& invalid = std::get<InvalidSchedule>(loaded);
  CheckVerdict verdict;
  verdict.name = invalid.schedule.name;
  verdict.problems = name_flags(invalid.problems);
  return verdict;
}

/// The schedule to draw; null if the shape was refused.
const Schedule* drawn(const Loaded& loaded) {
  if (const auto* valid = std::get_if<ValidSchedule>(&loaded)) return &valid->get();
  if (const auto* invalid = std::get_if<InvalidSchedule>(&loaded)) return &invalid->schedule;
  return nullptr;
}

void write_problems(traces::JsonWriter& json, const char* name, const Problems& problems) {
  json.key(name).begin_array();
  for (const Problem& problem : problems) {
    json.begin_object().member_or_null("rank", problem.rank);
    json.member_or_null("position", problem.position).member("message", to_string(problem));
    json.end_object();
  }
  json.end_array();
}

void write_deadlocks(traces::JsonWriter& json, const std::vector<ModeVerdict>& modes) {
  json.key("deadlock").begin_object();
  for (const ModeVerdict& mode : modes)
    json.member(name_of(kP2pModes, mode.mode), mode.deadlock.has_value());
  json.end_object().key("deadlock_cycle").begin_object();
  for (const ModeVerdict& mode : modes)
    if (mode.deadlock) json.member(name_of(kP2pModes, mode.mode), to_string(*mode.deadlock));
  json.end_object();
}

void write_verdict(traces::JsonWriter& json, const CheckVerdict& verdict,
                   const LowerOptions& options) {
  json.begin_object().member("format", "bubblescope-check/1").member("schedule", verdict.name);
  const Problems problems = verdict.all_problems();
  json.member("legal", problems.empty()).member("forward_only", verdict.forward_only);
  write_problems(json, "problems", problems);
  write_deadlocks(json, verdict.modes);
  json.member("eager_slots_checked", options.eager_slots);
  json.member_or_null("eager_slots_needed", verdict.eager_slots);
  if (verdict.hangs()) json.member("hangs_in_every_mode", true);
  if (verdict.after_edges > 0) json.member("after_edges", verdict.after_edges);
  json.key("peak_activations").begin_array();
  for (const Peak& peak : verdict.peaks) json.value(peak.activations);
  json.end_array();
  write_problems(json, "swapped_messages", verdict.swapped);
  write_suggestion(json, verdict.suggestion, verdict.late_sends);
  if (!verdict.over_cap.empty()) write_problems(json, "over_cap", verdict.over_cap);
  json.end_object();
}

void print_illegal(const CheckVerdict& verdict, const Schedule* schedule) {
  print_folded("{}: not legal, {}\n", verdict.name,
               counted(std::ssize(verdict.problems), "problem"));
  if (schedule != nullptr)
    print_output("{}", traces::draw_grid(*schedule, verdict.problems));
  else
    print_folded("  {}\n", to_string(verdict.problems[0]));
}

void print_modes(const CheckVerdict& verdict, const LowerOptions& options) {
  for (const ModeVerdict& mode : verdict.modes)
    print_folded("  {:<16} {}\n", to_string(mode.mode, options.eager_slots),
                 mode.deadlock ? "DEADLOCK: " + to_string(*mode.deadlock) : "cannot deadlock");
  print_folded("  eager slots needed: {}\n",
               verdict.eager_slots ? std::to_string(*verdict.eager_slots) : "no number is enough");
  if (verdict.swapped.empty()) return;
  const Problem& first = verdict.swapped.front();
  print_folded("  messages SWAPPED: rank {}: {}\n", *first.rank, to_string(first));
  print_folded(
      "  (between {} of ranks; a runtime that takes messages in their order, as PyTorch\n"
      "  does, computes with the wrong ones)\n",
      counted(std::ssize(verdict.swapped), "pair"));
}

void print_text(const CheckVerdict& verdict, const Schedule* schedule,
                const LowerOptions& options) {
  if (!verdict.legal()) return print_illegal(verdict, schedule);
  print_folded(
      "{}: legal{}{}\n", verdict.name,
      verdict.forward_only ? ", forwards alone: it has no backwards and trains nothing" : "",
      verdict.hangs() ? " order, but its messages HANG in every mode that posts them" : "");
  if (verdict.after_edges > 0)
    print_folded("  after edges: {}, which are waited for in every mode and posted in none\n",
                 verdict.after_edges);
  print_modes(verdict, options);
  std::string peaks;
  for (const Peak& peak : verdict.peaks) peaks += fmt::format(" {:g}", peak.activations);
  print_folded("  activations held at the peak, rank by rank:{}\n", peaks);
  for (const Problem& problem : verdict.over_cap) print_folded("  {}\n", to_string(problem));
  if (verdict.suggested_mode.empty()) return;
  const std::string& mode = verdict.suggested_mode;
  if (verdict.late_sends || verdict.suggestion)
    print_folded(
        "suggestion for {}{}, one move after the other:\n{}\n", mode,
        verdict.late_sends ? ", where sends are posted too late" : "",
        verdict.late_sends ? to_string(*verdict.late_sends) : to_string(*verdict.suggestion));
  else if (verdict.deadlocks_in_any())
    print_folded("no suggestion for {}: none of the tried receive positions helps\n", mode);
  else
    print_folded("no suggestion: no mode deadlocks, and no tried receive position gains time\n");
}

/// The reasons for which a schedule fails the check.
struct Standard {
  P2pMode mode = P2pMode::kDataflow;
  bool all_modes = false;

  bool is_met_by(const CheckVerdict& verdict) const {
    const bool fails = all_modes ? verdict.deadlocks_in_any() || !verdict.swapped.empty()
                                 : verdict.deadlocks_in(mode);
    return verdict.legal() && verdict.over_cap.empty() && !fails && !verdict.hangs();
  }
};

/// How check_all() checks and reports.
struct CheckRun {
  Standard standard;
  bool as_json = false;
  bool is_list = false;
  bool suggests = false;
};

/// Checks one schedule, and reports it. Returns 0, or 1 where it does not meet the standard.
int check_one(const std::string& name, const PredictInputs& inputs, const CheckRun& run,
              traces::JsonWriter& json) {
  const Loaded loaded = load(name, inputs);
  CheckVerdict verdict = check_schedule(loaded, inputs, run.suggests);
  const bool has_path = is_schedule_file(name) && name != "-";
  if (run.is_list && has_path) verdict.name = name;  // two files may have one name
  if (run.as_json)
    write_verdict(json, verdict, inputs.config().lower);
  else
    print_text(verdict, drawn(loaded), inputs.config().lower);
  return run.standard.is_met_by(verdict) ? 0 : 1;
}

/// Reports what cannot be read or found as an object of its own in a list. Returns its status.
int report_unreadable(const std::string& name, const Error& error, traces::JsonWriter& json) {
  const std::string message = name_flags(error.what());
  print_error(message);
  json.begin_object().member("format", "bubblescope-check/1").member("schedule", name);
  json.key("legal").null().member("error", message).end_object();
  return exit_status(error.fault());
}

/// Splits the words at commas, except those that are existing paths.
std::vector<std::string> expand_lists(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const std::string& word : words) {
    std::error_code unreadable;
    if (std::filesystem::exists(word, unreadable))
      names.push_back(word);
    else
      for (std::string& name : list_schedules(word)) names.push_back(std::move(name));
  }
  if (names.empty()) throw Error("check needs schedules, such as 1f1b or mine.csv");
  return without_repeats(std::move(names));
}

/// Checks every schedule, also those after one that cannot be read. Returns the worst status.
int check_all(const std::vector<std::string>& names, const PredictInputs& inputs,
              const CheckRun& run) {
  int status = 0;
  std::string text;
  traces::JsonWriter json(text, {.ascii = true});
  if (run.is_list) json.begin_array();
  for (const std::string& name : names) {
    try {
      const PredictInputs own = inputs.with([&](PredictOptions& flags) {
        if (is_schedule_file(name)) flags.shape = leave_to_names(flags.shape, names);
      });
      status = std::max(status, check_one(name, own, run, json));
    } catch (const Error& error) {
      if (names.size() == 1 || is_of_machine(error.fault())) throw;
      status = std::max(status, report_unreadable(name, error, json));
    }
  }
  if (run.is_list) json.end_array();
  if (run.as_json) print_output("{}\n", text);
  return status;
}

}  // namespace

int run_check(const Arguments& arguments) {
  CommandFlags app{"Is a schedule legal, can it deadlock, what memory does it need",
                   "bubblescope check"};
  std::vector<std::string> names;
  OutputFormat format = OutputFormat::kText;
  bool suggest = false;
  PredictOptions flags;
  app.add_option("SCHEDULE", names,
                 "names ('bubblescope list') or files, with blanks or commas between them, - for "
                 "stdin; or GOAL and Chakra files")
      ->required();
  add_predict_options(app, flags);
  add_loss_option(app, flags);
  Standard standard;
  app.add_flag("--all-modes", standard.all_modes,
               "exit 1 if it deadlocks in any message mode, or swaps messages: a gate for CI");
  app.add_flag("--suggest", suggest, "print receives in better places, and what they gain");
  add_format_option(app, format, {OutputFormat::kText, OutputFormat::kJson});
  app.footer(kCheckExample);
  if (names_workload(arguments)) return check_workload_files(arguments, app);
  // Whether an order is legal does not depend on costs, and memory counts in micro-batches here.
  expect_no_model(arguments, "check",
                  "'bubblescope simulate --model' says whether a model fits its devices");
  if (!app.parse(arguments)) return 0;
  if (!flags.injections.empty())
    throw Error(
        "check is about orders, which --inject does not change; try it with simulate or run");
  const std::size_t given = names.size();
  names = expand_lists(names);
  const bool is_list = given != 1 || names.size() != 1;
  flags.shape = complete_shape(names, flags);
  const PredictInputs inputs = read_inputs(std::move(flags), names);
  if (!suggest) warn_of_unused_times(inputs.flags(), names);  // a suggestion has a time
  warn_of_unused_update(inputs.flags(), "an order is the same with any end of the step");
  warn_of_file_shapes(
      inputs.flags(), names,
      is_of_pytorch(inputs.flags().shape.profile) ? ProfileUse::kLists : ProfileUse::kOrder);
  standard.mode = inputs.config().lower.mode;
  return check_all(names, inputs, {standard, format == OutputFormat::kJson, is_list, suggest});
}

}  // namespace bubblescope::tools
