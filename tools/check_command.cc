// check: is a schedule legal, can it deadlock, what memory does it need.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "sim/analysis/memory_curve.h"
#include "sim/ir/validate.h"
#include "tools/predict.h"
#include "traces/drawing.h"

namespace bubblescope {

namespace {

constexpr const char* kExample =
    "example: prove a hand-written PyTorch schedule before a thousand GPUs run it\n"
    "  bubblescope check my_schedule.csv\n"
    "  bubblescope check 1f1b --pp 8 -m 32 --format json\n";

/// What check found out about one schedule.
struct Verdict {
  std::string name;
  Problems problems;
  bool dataflow_deadlock = false;
  std::vector<Peak> peaks;  ///< empty where the schedule cannot run

  bool legal() const { return problems.empty(); }
};

/// A shape that is refused is a problem found, not a failure to check.
std::variant<Schedule, Verdict> load(const std::string& name, const PredictOptions& options) {
  try {
    return load_schedule(name, options);
  } catch (const Error& error) {
    if (error.fault() != Fault::kProblem) throw;
    return Verdict{name, {{{}, {}, error.what()}}, false, {}};
  }
}

Verdict examine(const Schedule& schedule, const PredictOptions& options) {
  Verdict verdict;
  verdict.name = schedule.name;
  verdict.problems = validate_ops(schedule);
  if (!verdict.legal()) return verdict;
  verdict.problems = validate_messages(schedule);
  const auto lowered = lower(schedule, options.cost.lower);
  if (const auto* deadlock = std::get_if<Deadlock>(&lowered)) {
    verdict.dataflow_deadlock = true;
    verdict.problems.push_back(deadlock_problem(schedule, *deadlock));
    return verdict;
  }
  verdict.peaks = find_peaks(schedule, std::get<Program>(lowered), load_memory(schedule, options));
  return verdict;
}

std::string json_of(const Verdict& verdict) {
  nlohmann::ordered_json json{{"format", "bubblescope-check/1"},
                              {"schedule", verdict.name},
                              {"legal", verdict.legal()},
                              {"problems", nlohmann::ordered_json::array()}};
  for (const Problem& problem : verdict.problems) {
    nlohmann::ordered_json item;
    item["rank"] = problem.rank ? nlohmann::ordered_json(*problem.rank) : nullptr;
    item["position"] = problem.position ? nlohmann::ordered_json(*problem.position) : nullptr;
    item["message"] = problem.message;
    json["problems"].push_back(std::move(item));
  }
  json["deadlock"] = {{"dataflow", verdict.dataflow_deadlock}};
  json["peak_activations"] = nlohmann::ordered_json::array();
  for (const Peak& peak : verdict.peaks) json["peak_activations"].push_back(peak.activations);
  return json.dump() + "\n";
}

void print_text(const Verdict& verdict, const Schedule* schedule) {
  if (verdict.legal()) {
    fmt::print("{}: legal, cannot deadlock when messages leave as soon as they are made\n",
               verdict.name);
  } else {
    fmt::print("{}: not legal, {} problem(s)\n", verdict.name, verdict.problems.size());
    if (schedule != nullptr)
      fmt::print("{}", draw_grid(*schedule, verdict.problems));
    else
      fmt::print("  {}\n", verdict.problems[0].message);
  }
  if (verdict.peaks.empty()) return;
  fmt::print("  activations held at the peak, rank by rank:");
  for (const Peak& peak : verdict.peaks) fmt::print(" {:g}", peak.activations);
  fmt::print("\n");
}

}  // namespace

int run_check(const Arguments& arguments) {
  CLI::App app{"Is a schedule legal, can it deadlock, what memory does it need", "check"};
  std::vector<std::string> names;
  std::string format;
  PredictOptions options;
  app.add_option("SCHEDULE", names, "names ('bubblescope list') or files, - for stdin")->required();
  add_predict_options(app, options);
  add_format_option(app, format, {"text", "json"});
  app.footer(kExample);
  if (!parse(app, arguments)) return 0;
  bool legal = true;
  for (const std::string& name : names) {
    const std::variant<Schedule, Verdict> loaded = load(name, options);
    const auto* schedule = std::get_if<Schedule>(&loaded);
    const Verdict verdict =
        schedule != nullptr ? examine(*schedule, options) : std::get<Verdict>(loaded);
    if (format == "json")
      fmt::print("{}", json_of(verdict));
    else
      print_text(verdict, schedule);
    legal = legal && verdict.legal();
  }
  return legal ? 0 : 1;
}

}  // namespace bubblescope
