// plan: many configurations, ranked, and why.
#include <fmt/format.h>
#include <malloc.h>

#include <map>
#include <thread>

#include "tools/break_even.h"
#include "tools/choice.h"
#include "tools/model_plan.h"
#include "tools/predict.h"
#include "tools/sweep.h"
#include "tools/terminal.h"
#include "tools/what_if.h"
#include "traces/plan_table.h"

namespace bubblescope {

namespace {

constexpr const char* kExample =
    "numbers: 4, or 1,2,4, or 2..16 (each), 8..128:8 (steps of 8), 8..128x2 (doubling)\n"
    "example: which schedule, at how many stages and micro-batches, while p2p costs 0.4 ms?\n"
    "  bubblescope plan --pp 2..16x2 --vpp 1,2,4 -m 8..128x2 --schedules all \\\n"
    "      --f 10 --i 10 --w 9 --p2p 0.4 --cap 12\n"
    "example: Llama 3 405B on 16,384 H100\n"
    "  bubblescope plan --model llama3-405b --gpu h100 --gpus 16384 --global-batch-size 2048\n"
    "example: a whole model of 80 ms forward, divided over the stages\n"
    "  bubblescope plan --pp 2,4,8 -m 32 --total-f 80 --total-i 80 --total-w 70\n";

/// A sweep takes in these many searched configurations without being asked to by name.
constexpr std::size_t kFewSearched = 64;
constexpr std::size_t kMostConfigurations = 10'000'000;

struct PlanOptions {
  Axes axes;  ///< empty: 4 ranks, 1 chunk, 8 micro-batches; for a model, whatever fits
  ModelAxes model_axes;
  std::string schedules = "all";
  PredictOptions predict;
  bool whole_model = false;
  std::optional<std::size_t> top;
  std::int32_t threads = static_cast<std::int32_t>(std::thread::hardware_concurrency());
  std::string format;
  std::string svg;

  bool sliced() const { return predict.shape.slices.value_or(1) > 1; }
};

void add_numbers(CLI::App& app, const Flag& flag, std::vector<std::int32_t>& numbers) {
  add_parsed(app, flag, [&numbers](const std::string& text) { numbers = parse_numbers(text); });
}

void add_axes(CLI::App& app, PlanOptions& options) {
  add_numbers(app, {"--pp,--pipeline-model-parallel-size", "ranks of the pipeline", "NUMBERS"},
              options.axes.ranks);
  add_numbers(app,
              {"--vpp,--num-virtual-stages-per-pipeline-rank",
               "stages (chunks) per rank, for schedules that do not imply theirs", "NUMBERS"},
              options.axes.chunks);
  add_numbers(app, {"-m,--microbatches,--num-microbatches", "micro-batches of one step", "NUMBERS"},
              options.axes.microbatches);
  app.add_option("--schedules", options.schedules,
                 "names, 'all' (fixed orders that train synchronously), 'searched' (those that "
                 "look for an order); default all")
      ->type_name("NAMES");
  app.add_option("--slices", options.predict.shape.slices, "cuts of every sequence")
      ->check(CLI::Range(1, 4096));
  add_profile_option(app, options.predict.shape);
}

/// For a model the numbers of ranks of every kind are varied; micro-batches follow from the batch.
void add_model_axes(CLI::App& app, PlanOptions& options) {
  ModelAxes& axes = options.model_axes;
  add_model_options(app, options.predict.model);
  app.add_option("--gpus", axes.gpus, "devices to use, all of them")->check(CLI::Range(1, 1 << 24));
  app.add_option("--global-batch-size,--global-batch", axes.global_batch, "samples of a step")
      ->check(CLI::Range(1, 1 << 30));
  add_numbers(app, {"--tp,--tensor-model-parallel-size", "ranks of a layer", "NUMBERS"},
              axes.tensor);
  add_numbers(app, {"--cp,--context-parallel-size", "ranks of a sequence (default 1)", "NUMBERS"},
              axes.context);
  add_numbers(app,
              {"--ep,--expert-model-parallel-size", "ranks of the experts (default 1)", "NUMBERS"},
              axes.expert);
  add_numbers(app, {"--micro-batch-size", "samples of a micro-batch (default 1,2,4)", "NUMBERS"},
              axes.micro_batch_sizes);
  add_parsed(app, {"--recompute", "none, selective, full: a list (default none,full)", "NAMES"},
             [&axes](const std::string& text) {
               axes.recomputes.clear();
               for (const std::string& name : CLI::detail::split(text, ','))
                 axes.recomputes.push_back(parse_recompute(name));
             });
}

/// --total-f and its kin: a whole model's times, to be divided by the stages.
void add_totals(CLI::App& app, PlanOptions& options) {
  using Set = void (*)(UniformCost&, Nanos);
  const auto add = [&](const char* flag, const char* help, Set set) {
    add_parsed(app, {flag, help}, [&options, set](const std::string& text) {
      set(options.predict.cost.uniform, parse_duration(text));
      options.whole_model = true;
    });
  };
  add("--total-f", "forward of one micro-batch through all stages",
      [](UniformCost& cost, Nanos time) { cost.forward = time; });
  add("--total-i", "its input gradient",
      [](UniformCost& cost, Nanos time) { cost.input_grad = time; });
  add("--total-w", "its weight gradient",
      [](UniformCost& cost, Nanos time) { cost.weight_grad = time; });
  add("--total-b", "its full backward (default: i + w)",
      [](UniformCost& cost, Nanos time) { cost.backward = time; });
}

void expect_one_kind_of_cost(const CLI::App& app, const PlanOptions& options) {
  if (!options.whole_model) return;
  for (const char* flag : {"--f", "--i", "--w", "--b"})
    if (app.get_option(flag)->count() > 0)
      throw Error(fmt::format("{0} is of one rank, --total{1} of the whole model; give one kind",
                              flag, std::string(flag).substr(1)));
  for (const char* flag : {"--total-f", "--total-i", "--total-w"})
    if (app.get_option(flag)->count() == 0 &&
        !(app.get_option("--total-b")->count() > 0 && std::string(flag) != "--total-f"))
      throw Error(fmt::format("{} is missing; the other --total times divide a whole model", flag));
}

/// Searching takes tenths of a second per configuration: few are welcome, many must be asked for.
void add_searched(PlanOptions& options) {
  if (options.schedules != "all") return;
  Axes searched = options.axes;
  searched.schedules = schedules_of("searched", options.sliced());
  if (combine(searched).size() <= kFewSearched)
    options.axes.schedules.insert(options.axes.schedules.end(), searched.schedules.begin(),
                                  searched.schedules.end());
  else
    fmt::print(stderr,
               "bubblescope: schedules that look for an order are left out of so many "
               "configurations; '--schedules all,searched' takes them in\n");
}

std::vector<Refusal> group_refusals(const std::vector<Configuration>& configurations,
                                    const std::vector<Outcome>& outcomes) {
  std::map<std::string, Refusal> of_schedule;
  for (std::size_t at = 0; at < outcomes.size(); ++at) {
    if (outcomes[at].refusal.empty()) continue;
    Refusal& refused = of_schedule[configurations[at].schedule];
    if (refused.configurations++ > 0) continue;
    refused.schedule = configurations[at].schedule;
    refused.reason = outcomes[at].refusal;
  }
  std::vector<Refusal> refusals;
  for (auto& [schedule, refused] : of_schedule) refusals.push_back(std::move(refused));
  return refusals;
}

PlanTable tabulate(const std::vector<Configuration>& configurations,
                   std::vector<Outcome> outcomes) {
  PlanTable table;
  table.configurations = static_cast<std::int64_t>(configurations.size());
  table.refusals = group_refusals(configurations, outcomes);
  for (Outcome& outcome : outcomes)
    if (outcome.plan && outcome.refusal.empty()) table.plans.push_back(*std::move(outcome.plan));
  table.plans = rank_plans(std::move(table.plans));
  return table;
}

/// Every walk takes and gives back the same few large blocks: keep them instead of asking the
/// system for fresh pages each time, which costs as much as the walk.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

void print_table(PlanTable table, const PlanOptions& options) {
  if (options.format == "text") {
    const DrawOptions terminal = terminal_draw_options();
    fmt::print("{}",
               write_plan_text(table, {terminal.width, terminal.colour, options.top.value_or(20)}));
    return;
  }
  if (options.top && *options.top < table.plans.size()) table.plans.resize(*options.top);
  fmt::print("{}", options.format == "json" ? write_plan_json(table) : write_plan_csv(table));
}

int show(PlanTable table, const PlanOptions& options) {
  const int status = table.plans.empty() ? 1 : 0;
  if (!options.svg.empty() && status == 0) write_file(options.svg, write_heat_map_svg(table.plans));
  print_table(std::move(table), options);
  return status;
}

int plan_model(const CLI::App& app, PlanOptions& options) {
  for (const char* flag : {"-m", "--f", "--i", "--w", "--b", "--p2p", "--costs", "--total-f"})
    if (app.get_option(flag)->count() > 0)
      throw Error(fmt::format("{} says what --model says; leave one out", flag));
  ModelAxes axes = options.model_axes;
  axes.schedules = options.axes.schedules;
  axes.ranks = options.axes.ranks;
  axes.chunks = options.axes.chunks;
  const ModelPlanner planner(options.predict, std::move(axes));
  if (options.predict.model.explain) print_assumptions(planner.model());
  const std::vector<Configuration> configurations = planner.configurations();
  if (configurations.empty())
    throw Error("no ranks and micro-batches divide these --gpus and this --global-batch-size");
  const auto evaluate = [&](const Configuration& which) { return planner.evaluate(which); };
  return show(
      tabulate(configurations, sweep(configurations, evaluate, options.threads, progress_bar())),
      options);
}

int plan_shapes(PlanOptions& options) {
  Axes& axes = options.axes;
  if (axes.ranks.empty()) axes.ranks = {4};
  if (axes.chunks.empty()) axes.chunks = {1};
  if (axes.microbatches.empty()) axes.microbatches = {8};
  add_searched(options);
  const std::vector<Configuration> configurations = combine(axes);
  if (configurations.size() > kMostConfigurations)
    throw Error(fmt::format("{} configurations are too many, the limit is {}; vary less",
                            configurations.size(), kMostConfigurations));
  const WhatIf what_if(options.predict, options.whole_model);
  const auto evaluate = [&](const Configuration& which) { return what_if.evaluate(which); };
  PlanTable table =
      tabulate(configurations, sweep(configurations, evaluate, options.threads, progress_bar()));
  BreakEvens break_evens = find_break_evens(what_if, table.plans);
  table.break_evens = std::move(break_evens.found);
  table.stays_best = std::move(break_evens.stays_best);
  return show(std::move(table), options);
}

}  // namespace

int run_plan(const Arguments& arguments) {
  CLI::App app{"Sweep schedules and shapes: ranked, with break-even points and reasons",
               "bubblescope plan"};
  PlanOptions options;
  add_axes(app, options);
  add_model_axes(app, options);
  add_cost_options(app, options.predict.cost);
  add_totals(app, options);
  add_memory_options(app, options.predict.memory);
  app.add_option("--top", options.top, "plans to show (default 20 in text, all in csv and json)");
  app.add_option("--threads", options.threads, "threads (default: one per core)")
      ->check(CLI::Range(1, 4096));
  app.add_option("--svg", options.svg, "the heat map as a picture")->type_name("FILE");
  add_format_option(app, options.format, {"text", "json", "csv"});
  app.footer(kExample);
  if (!parse(app, arguments)) return 0;
  expect_one_kind_of_cost(app, options);
  options.axes.schedules = schedules_of(options.schedules, options.sliced());
  keep_freed_memory();
  return options.predict.model.given() ? plan_model(app, options) : plan_shapes(options);
}

}  // namespace bubblescope
