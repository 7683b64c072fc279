// Turns arguments into PlanOptions.
#include "tools/plan/plan_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <thread>

#include "sim/ir/counted.h"
#include "sim/ir/nearest_names.h"
#include "sim/ir/recompute.h"
#include "sim/ir/registry.h"
#include "sim/ir/shape.h"
#include "sim/ir/size_limits.h"
#include "tools/flags/choice.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/heading.h"
#include "tools/flags/model_options.h"
#include "tools/flags/options.h"
#include "tools/flags/output_format.h"
#include "tools/flags/recompute_options.h"
#include "tools/flags/unstated_defaults.h"
#include "tools/flags/words.h"
#include "tools/inputs/inputs.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kPlanExample =
    "numbers: 4, or 1,2,4, or 2..16 (each), 8..128:8 (steps of 8), 8..128x2 (doubling)\n"
    "example: which schedule, at how many stages and micro-batches, while p2p costs 0.4 ms?\n"
    "  bubblescope plan --pp 2..16x2 --vpp 1,2,4 -m 8..128x2 --schedules all \\\n"
    "      --f 10 --i 10 --w 9 --p2p 0.4 --cap 12\n"
    "example: Llama 3 405B on 16,384 H100\n"
    "  bubblescope plan --model llama3-405b --gpu h100 --gpus 16384 --global-batch-size 2048\n"
    "example: a whole model of 80 ms forward, divided over the stages\n"
    "  bubblescope plan --pp 2,4,8 -m 32 --total-f 80 --total-i 80 --total-w 70\n";

void add_numbers(CommandFlags& app, const Flag& flag, std::vector<std::int32_t>& numbers) {
  add_parsed(app, flag, [&numbers](const std::string& text) { numbers = parse_numbers(text); });
}

/// Adds a flag with a list, each of whose values counts once.
template <class Value, class Parse>
void add_list(CommandFlags& app, const Flag& flag, std::vector<Value>& values, const Parse& parse) {
  add_parsed(app, flag, [&values, parse](const std::string& text) {
    values.clear();
    for (const std::string& part : split(text, ',')) {
      const Value value = parse(part);
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
  });
}

LayerSplit parse_split(const std::string& text) {
  std::vector<std::string> names;
  for (const auto& known : kLayerSplits) names.emplace_back(known.name);
  if (const auto* known = find_named(kLayerSplits, normalize_name(text))) return known->choice;
  throw Error("'" + text + "' is not one of " + join(names, "|") +
              suggestion(nearest_names(text, names)));
}

RecomputeChoice parse_recompute_choice(const std::string& text) {
  const std::string name = normalize_name(text);
  if (name == "modules") return {Recompute::kSelective, true};
  if (const std::optional<Recompute> known = find_recompute(name)) return {*known};
  throw Error("'" + text + "' is not one of none|selective|modules|full" +
              suggestion(nearest_names(text, {"none", "selective", "modules", "full"})));
}

/// Numbers of layers, of which there may be none.
std::vector<std::int32_t> parse_layers(const std::string& text) {
  std::set<std::int32_t> numbers;
  for (const std::string& part : split(text, ',')) {
    if (part == "0") {
      numbers.insert(0);
      continue;
    }
    const std::vector<std::int32_t> more = parse_numbers(part);
    numbers.insert(more.begin(), more.end());
  }
  if (!numbers.empty() && *numbers.rbegin() > kMaxRecomputedLayers)
    throw Error(fmt::format("'{}' is more than the {} that a stage may have", text,
                            counted(kMaxRecomputedLayers, "layer")));
  return {numbers.begin(), numbers.end()};
}

/// Applies the limits of a single schedule.
void expect_sizes(const Axes& axes) {
  if (!axes.ranks.empty() && axes.ranks.back() > kMaxRanks)
    throw Error(fmt::format("--pp {} is more than the {} that a pipeline may have",
                            axes.ranks.back(), counted(kMaxRanks, "rank")));
  if (!axes.chunks.empty() && axes.chunks.back() > kMaxChunks)
    throw Error(fmt::format("--vpp {} is more than the {} that a rank may have", axes.chunks.back(),
                            counted(kMaxChunks, "chunk")));
}

void add_axes(CommandFlags& app, PlanQuestion& options) {
  add_numbers(app, {"--pp,--pipeline-model-parallel-size", "ranks of the pipeline", "NUMBERS"},
              options.axes.ranks);
  add_numbers(app,
              {"--vpp,--num-virtual-stages-per-pipeline-rank",
               "stages (chunks) per rank; not needed by schedules with a fixed number of chunks",
               "NUMBERS"},
              options.axes.chunks);
  add_numbers(app, {"-m,--microbatches,--num-microbatches", "micro-batches of one step", "NUMBERS"},
              options.axes.microbatches);
  app.add_option("--schedules", options.schedules,
                 "names, 'all' (fixed orders that train synchronously), 'searched' (those that "
                 "search for an order), 'vocab' (those that split a model's output layer); "
                 "default auto: all, and without a model those that search if they are few")
      ->type_name("NAMES");
  app.add_option("--slices", options.predict.shape.slices, "slices per sequence")
      ->check(InRange(1, 4096));
  add_moe_overlap_option(app, options.predict.shape);
}

/// Returns one value of a plan's --unshard-lookahead, which is the same for all ranks.
std::optional<UnshardLookahead> parse_swept_lookahead(const std::string& text) {
  if (normalize_name(text) == "none") return std::nullopt;
  std::optional<UnshardLookahead> lookahead = find_lookahead(text);
  if (!lookahead)
    throw Error("'" + text + "' is not a number of stages; write full, auto, none or 2");
  spread_lookahead(*lookahead, 1);  // throws for a number of stages that no rank gathers
  return lookahead;
}

void add_recompute_axes(CommandFlags& app, ModelAxes& axes) {
  add_list(app,
           {"--recompute,--recompute-granularity",
            "a list of none, selective, full and modules: under Megatron-Core the fastest set of "
            "modules with which layers fit that do not fit without (default none,modules,full)",
            "NAMES"},
           axes.recomputes, parse_recompute_choice);
  add_recompute_method_option(app, axes.recompute_method);
  add_parsed(
      app, {"--recompute-num-layers", "layers of such a group, or of the block; a list", "NUMBERS"},
      [&axes](const std::string& text) { axes.recompute_layers = parse_layers(text); });
}

/// Adds the axes of a model: the number of ranks of every kind. The micro-batches follow from the
/// batch.
void add_model_axes(CommandFlags& app, PlanQuestion& options) {
  ModelAxes& axes = options.model_axes;
  const Heading heading(app, kModelHeading);
  app.add_option("--gpus", axes.gpus, "devices to use, all of them")->check(InRange(1, 1 << 24));
  app.add_option("--global-batch-size,--global-batch", axes.global_batch, "samples of a step")
      ->check(InRange(1, 1 << 30));
  add_numbers(app, {"--tp,--tensor-model-parallel-size", "tensor-parallel ranks", "NUMBERS"},
              axes.tensor);
  add_numbers(app,
              {"--cp,--context-parallel-size", "context-parallel ranks (default 1)", "NUMBERS"},
              axes.context);
  add_numbers(app,
              {"--ep,--expert-model-parallel-size",
               "expert-parallel ranks (default: all that divide the experts)", "NUMBERS"},
              axes.expert);
  add_numbers(app, {"--etp,--expert-tensor-parallel-size", kExpertTensorHelp, "NUMBERS"},
              axes.expert_tensor);
  add_numbers(app, {"--micro-batch-size", "samples of a micro-batch (default 1,2,4)", "NUMBERS"},
              axes.micro_batch_sizes);
  add_recompute_axes(app, axes);
  add_list(app,
           {"--send-budget",
            "sends that a rank may have outstanding, which then count as memory: numbers and none, "
            "a list (default: not counted)",
            "K,..."},
           axes.send_budgets, parse_send_budget);
  add_list(app,
           {"--unshard-lookahead",
            "with --zero 3: how many stages ahead FSDP gathers weights, which then count as "
            "memory, or none, where every op gathers its own; a list (default none)",
            "N|auto|full|none,..."},
           axes.lookaheads, parse_swept_lookahead);
  add_list(app,
           {"--split",
            "how layers are split among stages: a list of balanced, even, ends (fewer on the first "
            "and the last stage) and fitted (as balanced as memory allows); default: all, each "
            "where it may beat those before it",
            "NAMES"},
           axes.splits, parse_split);
  add_layer_options(app, options.predict.model);
  add_explain_option(app, options.predict.model);
}

/// Adds --total-f and similar flags: a whole model's times, which are divided among the stages.
void add_totals(CommandFlags& app, PlanQuestion& options) {
  const auto add = [&](const char* flag, const char* help, const SetDuration& set) {
    add_duration(app, options.predict.cost, {flag, help},
                 [&options, set](UniformCost& cost, Nanos time) {
                   set(cost, time);
                   options.whole_model = true;
                 });
  };
  add("--total-f", "forward of one micro-batch through all stages",
      [](UniformCost& cost, Nanos time) { cost.forward = time; });
  add("--total-i", "its input gradient",
      [](UniformCost& cost, Nanos time) { cost.input_grad = time; });
  add("--total-w", "its weight gradient",
      [](UniformCost& cost, Nanos time) { cost.weight_grad = time; });
  add("--total-b", "its full backward (default: i + w); halved where i and w are not given",
      [](UniformCost& cost, Nanos time) { cost.backward = time; });
}

void expect_one_kind_of_cost(const CommandFlags& app, const PlanQuestion& options) {
  if (!options.whole_model) return;
  for (const char* flag : {"--f", "--i", "--w", "--b"})
    if (app.count(flag) > 0)
      throw Error(fmt::format("{0} is of one rank, --total{1} of the whole model; give one kind",
                              flag, std::string(flag).substr(1)));
  for (const char* flag : {"--total-f", "--total-i", "--total-w"})
    if (app.count(flag) == 0 && !(app.count("--total-b") > 0 && std::string(flag) != "--total-f"))
      throw Error(fmt::format("{} is missing; the other --total times divide a whole model", flag));
}

/// Refuses -m, because the number of micro-batches of a model follows from its samples.
void expect_no_microbatches(const CommandFlags& app, const PlanQuestion& options) {
  if (options.predict.model.given() && app.count("-m") > 0)
    throw Error(
        "-m follows from --global-batch-size, --gpus and --micro-batch-size where there is a "
        "--model; leave it out");
}

/// Plans with the layers of ranks that flags give, instead of several splits.
void use_given_ends(const CommandFlags& app, PlanQuestion& options) {
  if (!options.predict.model.parallel.ends.any()) return;
  if (app.count("--split") > 0)
    throw Error(
        "--first-layers, --last-layers and --account-for-... give every rank its layers; leave "
        "--split out");
  options.model_axes.splits = {LayerSplit::kEnds};
}

/// Adds the flags that control how the sweep is run, stored and shown.
void add_run_options(CommandFlags& app, PlanRun& options) {
  app.add_option("--top", options.top,
                 "plans to show (default 20 in text, all in csv and json, 1 for a framework)");
  app.add_option("--threads", options.threads, "threads (default: one per core)")
      ->check(InRange(1, 4096));
  app.add_option("--resume", options.files.journal,
                 "save results in this file as they come; an interrupted plan resumes from it")
      ->type_name("FILE");
  add_parsed(app, {"--shard", "evaluate only the K-th of N parts, on as many machines", "K/N"},
             [&options](const std::string& text) { options.files.shard = parse_shard(text); });
  app.add_option("--merge", options.files.parts,
                 "the files of all shards: prints the plan that one machine would print; no other "
                 "flags but --format, --top and --svg are needed")
      ->type_name("FILE")
      ->takes_words();
  app.add_flag("--wide", options.wide,
               "all columns of tables, also where the terminal is narrower");
  app.add_option("--svg", options.svg, "the heat map as a picture")->type_name("FILE");
  add_format_option(app, options.format,
                    {OutputFormat::kText, OutputFormat::kJson, OutputFormat::kCsv,
                     OutputFormat::kMegatron, OutputFormat::kTorchtitan});
}

void check_flag_files(const SweepFiles& files) {
  if (!files.parts.empty() && (files.shard || !files.journal.empty()))
    throw Error("--merge reads what is there; leave --shard and --resume out");
  if (std::find(files.parts.begin(), files.parts.end(), "-") != files.parts.end())
    throw Error("--merge reads plain files; give their names instead of -");
  if (files.journal == "-" || files.journal.ends_with(".gz"))
    throw Error("--resume adds to a plain file; give a name that is neither - nor ends in .gz");
}

/// Adds flags for which every plan has values of its own.
void add_settled(CommandFlags& app, PlanQuestion& question,
                 const std::function<void(CommandFlags&, PlanQuestion&)>& add) {
  const auto known = static_cast<std::ptrdiff_t>(app.long_names().size());
  add(app, question);
  const std::vector<std::string> names = app.long_names();
  question.settled.insert(names.begin() + known, names.end());
}

void add_question_options(CommandFlags& app, PlanQuestion& question) {
  add_settled(app, question, add_axes);
  add_profile_option(app, question.predict.shape);
  add_swept_model_options(app, question.predict.model);
  add_settled(app, question, add_model_axes);
  add_cost_options(app, question.predict.cost);
  add_network_option(app, question.predict.cost);
  add_settled(app, question, add_totals);
  add_memory_options(app, question.predict.memory);
}

/// Checks and completes what the first flags of the command have set.
void finish_question(const CommandFlags& app, std::size_t flags, PlanQuestion& question) {
  warn_without_model(app, question.predict.model);
  find_unstated_defaults(app, question.predict);
  expect_one_kind_of_cost(app, question);
  expect_no_microbatches(app, question);
  use_given_ends(app, question);
  expect_one_cost_source(question.predict);
  expect_sizes(question.axes);
  question.flags = app.given_flags(flags);
}

}  // namespace

bool PlanQuestion::gives(std::string_view flag) const {
  return std::any_of(flags.begin(), flags.end(),
                     [&](const FlagWithValue& given) { return given.flag == flag; });
}

PlanQuestion parse_plan_question(const std::vector<std::string>& arguments) {
  CommandFlags app{"A plan's question", "bubblescope plan"};
  PlanQuestion question;
  add_question_options(app, question);
  if (!app.parse(arguments)) throw Error("a journal's plan asks for help; run its shards again");
  finish_question(app, app.size(), question);
  return question;
}

std::optional<PlanOptions> parse_plan_options(const std::vector<std::string>& arguments) {
  CommandFlags app{"Sweep schedules and shapes: ranked, with break-even points and reasons",
                   "bubblescope plan"};
  PlanOptions options;
  options.threads = std::max(1, static_cast<std::int32_t>(std::thread::hardware_concurrency()));
  add_question_options(app, options);
  const std::size_t question_flags = app.size();
  add_run_options(app, options);
  app.footer(kPlanExample);
  if (!app.parse(arguments)) return {};
  finish_question(app, question_flags, options);
  if (options.top == 0u) throw Error("--top 0 shows no plan; give 1 or more");
  check_flag_files(options.files);
  return options;
}

}  // namespace bubblescope::tools
