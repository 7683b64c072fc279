// check: is a schedule legal, in which message modes can it deadlock, what memory does it need.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "sim/analysis/memory_curve.h"
#include "sim/analysis/suggest_receives.h"
#include "sim/engine/simulate.h"
#include "sim/ir/check_messages.h"
#include "sim/ir/validate.h"
#include "tools/load_order.h"
#include "tools/predict.h"
#include "traces/drawing.h"

namespace bubblescope {

namespace {

constexpr const char* kExample =
    "example: prove a hand-written PyTorch schedule before a thousand GPUs run it\n"
    "  bubblescope check my_schedule.csv\n"
    "example: the smallest deadlock of receives that are posted late, and what removes it\n"
    "  bubblescope check interleaved --pp 2 -m 2 --lowering deferred --p2p-mode rendezvous "
    "--suggest\n"
    "exit status: 1 if a schedule is not legal, deadlocks in the mode of --p2p-mode (with\n"
    "--all-modes: in any), or holds more than --cap\n";

/// What check found out about one schedule; what a schedule that cannot run has not, is empty.
struct Verdict {
  std::string name;
  Problems problems;
  std::vector<ModeVerdict> modes;
  std::optional<std::int32_t> eager_slots;
  std::vector<Peak> peaks;
  Problems over_cap;
  std::optional<ReceiveSuggestion> suggestion;
  std::string suggested_mode;  ///< the mode in which the suggestion gains what it says

  bool legal() const { return problems.empty(); }
  bool deadlocks_in_any() const {
    return std::any_of(modes.begin(), modes.end(),
                       [](const ModeVerdict& verdict) { return verdict.deadlock.has_value(); });
  }
  /// The mode that was asked for; where none was, the first that deadlocks, or rendezvous.
  P2pMode mode_to_mend(P2pMode asked) const {
    if (asked != P2pMode::kDataflow) return asked;
    for (const ModeVerdict& verdict : modes)
      if (verdict.deadlock) return verdict.mode;
    return P2pMode::kRendezvous;
  }
  bool deadlocks_in(P2pMode mode) const {
    return std::any_of(modes.begin(), modes.end(), [&](const ModeVerdict& verdict) {
      return verdict.mode == mode && verdict.deadlock;
    });
  }
};

/// A shape that is refused is a problem found, not a failure to check.
std::variant<Schedule, Verdict> load(const std::string& name, const PredictOptions& options) {
  try {
    return load_order(name, options);
  } catch (const Error& error) {
    if (error.fault() != Fault::kProblem) throw;
    Verdict refused;
    refused.name = name;
    refused.problems = {{{}, {}, error.what()}};
    return refused;
  }
}

Verdict examine(const Schedule& schedule, const PredictOptions& options, bool suggest) {
  Verdict verdict;
  verdict.name = schedule.name;
  verdict.problems = validate(schedule);
  if (validate_ops(schedule).empty()) {
    const auto lowered = lower(schedule);
    if (const auto* deadlock = std::get_if<Deadlock>(&lowered)) {
      // Ops that wait for each other do so whatever the messages do.
      for (const Named<P2pMode>& mode : kP2pModes)
        verdict.modes.push_back({mode.choice, *deadlock});
    }
  }
  if (!verdict.legal()) return verdict;
  const LowerOptions& lower_options = options.cost.lower;
  verdict.modes = check_modes(schedule, lower_options);
  verdict.eager_slots = eager_slots_needed(schedule, lower_options);
  const Program program = std::get<Program>(lower(schedule));
  const Models models = load_models(schedule, options);
  const Timeline timeline = simulate(program, models.costs);
  verdict.peaks = find_peaks(schedule, program, timeline, models.memory);
  verdict.over_cap = over_cap(verdict.peaks, models.memory);
  if (suggest) {
    LowerOptions suggested = lower_options;
    suggested.mode = verdict.mode_to_mend(lower_options.mode);
    verdict.suggestion = suggest_receives(schedule, suggested, models.costs);
    verdict.suggested_mode = to_string(suggested.mode, suggested.eager_slots);
  }
  return verdict;
}

nlohmann::ordered_json json_of(const Problem& problem) {
  nlohmann::ordered_json item;
  item["rank"] = problem.rank ? nlohmann::ordered_json(*problem.rank) : nullptr;
  item["position"] = problem.position ? nlohmann::ordered_json(*problem.position) : nullptr;
  item["message"] = problem.message;
  return item;
}

nlohmann::ordered_json json_of(const Verdict& verdict) {
  nlohmann::ordered_json json{{"format", "bubblescope-check/1"},
                              {"schedule", verdict.name},
                              {"legal", verdict.legal()},
                              {"problems", nlohmann::ordered_json::array()},
                              {"deadlock", nlohmann::ordered_json::object()},
                              {"deadlock_cycle", nlohmann::ordered_json::object()},
                              {"eager_slots_needed", nullptr},
                              {"peak_activations", nlohmann::ordered_json::array()}};
  for (const Problem& problem : verdict.problems) json["problems"].push_back(json_of(problem));
  for (const ModeVerdict& mode : verdict.modes) {
    const std::string name = name_of(kP2pModes, mode.mode);
    json["deadlock"][name] = mode.deadlock.has_value();
    if (mode.deadlock) json["deadlock_cycle"][name] = to_string(*mode.deadlock);
  }
  if (verdict.eager_slots) json["eager_slots_needed"] = *verdict.eager_slots;
  for (const Peak& peak : verdict.peaks) json["peak_activations"].push_back(peak.activations);
  if (verdict.suggestion) json["suggestion"] = to_string(*verdict.suggestion);
  for (const Problem& problem : verdict.over_cap) json["over_cap"].push_back(json_of(problem));
  return json;
}

void print_illegal(const Verdict& verdict, const Schedule* schedule) {
  fmt::print("{}: not legal, {} problem(s)\n", verdict.name, verdict.problems.size());
  if (schedule != nullptr) {
    fmt::print("{}", draw_grid(*schedule, verdict.problems));
  } else {
    fmt::print("  {}\n", verdict.problems[0].message);
  }
}

void print_modes(const Verdict& verdict, const LowerOptions& options) {
  for (const ModeVerdict& mode : verdict.modes) {
    const std::string name = to_string(mode.mode, options.eager_slots);
    fmt::print("  {:<16} {}\n", name,
               mode.deadlock ? "DEADLOCK: " + to_string(*mode.deadlock) : "cannot deadlock");
  }
  fmt::print("  eager slots needed: {}\n",
             verdict.eager_slots ? std::to_string(*verdict.eager_slots) : "no number is enough");
}

void print_text(const Verdict& verdict, const Schedule* schedule, const LowerOptions& options) {
  if (!verdict.legal()) return print_illegal(verdict, schedule);
  fmt::print("{}: legal\n", verdict.name);
  print_modes(verdict, options);
  fmt::print("  activations held at the peak, rank by rank:");
  for (const Peak& peak : verdict.peaks) fmt::print(" {:g}", peak.activations);
  fmt::print("\n");
  for (const Problem& problem : verdict.over_cap) fmt::print("  {}\n", problem.message);
  if (verdict.suggested_mode.empty()) return;
  if (!verdict.suggestion) {
    fmt::print("no suggestion for {}: no other places of receives that were tried are better\n",
               verdict.suggested_mode);
  } else {
    fmt::print("suggestion for {}:\n{}\n", verdict.suggested_mode, to_string(*verdict.suggestion));
  }
}

}  // namespace

int run_check(const Arguments& arguments) {
  CLI::App app{"Is a schedule legal, can it deadlock, what memory does it need",
               "bubblescope check"};
  std::vector<std::string> names;
  std::string format;
  bool suggest = false;
  PredictOptions options;
  app.add_option("SCHEDULE", names, "names ('bubblescope list') or files, - for stdin")->required();
  add_predict_options(app, options);
  bool all_modes = false;
  app.add_flag("--all-modes", all_modes,
               "exit 1 if it deadlocks in any message mode: a gate for CI");
  app.add_flag("--suggest", suggest, "print receives in better places, and what they gain");
  add_format_option(app, format, {"text", "json"});
  app.footer(kExample);
  if (!parse(app, arguments)) return 0;
  if (!options.injections.empty())
    throw Error(
        "check is about orders, which --inject does not change; try it with simulate or run");
  bool sound = true;
  nlohmann::ordered_json reports = nlohmann::ordered_json::array();
  for (const std::string& name : names) {
    const std::variant<Schedule, Verdict> loaded = load(name, options);
    const auto* schedule = std::get_if<Schedule>(&loaded);
    const Verdict verdict =
        schedule != nullptr ? examine(*schedule, options, suggest) : std::get<Verdict>(loaded);
    if (format == "json") {
      reports.push_back(json_of(verdict));
    } else {
      print_text(verdict, schedule, options.cost.lower);
    }
    const bool deadlocks =
        all_modes ? verdict.deadlocks_in_any() : verdict.deadlocks_in(options.cost.lower.mode);
    sound = sound && verdict.legal() && verdict.over_cap.empty() && !deadlocks;
  }
  if (format == "json")
    fmt::print("{}\n", reports.size() == 1 ? reports[0].dump() : reports.dump());
  return sound ? 0 : 1;
}

}  // namespace bubblescope
