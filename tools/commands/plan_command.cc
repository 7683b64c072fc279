// Implements plan, which ranks many configurations and explains the ranking.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/model/schedule_refusal.h"
#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/commands/exports.h"
#include "tools/flags/field_names.h"
#include "tools/flags/output_format.h"
#include "tools/inputs/given_flag.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/notes.h"
#include "tools/inputs/resolve_model.h"
#include "tools/inputs/unused_flags.h"
#include "tools/interrupt.h"
#include "tools/plan/break_even.h"
#include "tools/plan/command_of_plan.h"
#include "tools/plan/left_out.h"
#include "tools/plan/model_evaluator.h"
#include "tools/plan/plan_options.h"
#include "tools/plan/plan_warnings.h"
#include "tools/plan/sweep.h"
#include "tools/print.h"
#include "tools/terminal.h"
#include "traces/plans/heat_map.h"
#include "traces/plans/plan_table.h"

namespace bubblescope::tools {

namespace {

/// The number of searched configurations up to which a sweep includes them without being asked.
constexpr std::size_t kMaxSearchedUnasked = 64;

/// Adds searched schedules. A search takes tenths of a second per configuration, so a few are
/// included by default and many only on request.
void add_searched(PlanOptions& options) {
  if (!lists_schedule_group(options.schedules, "auto")) return;
  Axes searched = options.axes;
  searched.schedules = expand_schedules("searched", options.sliced());
  if (count_configurations(searched) <= kMaxSearchedUnasked)
    options.axes.schedules.insert(options.axes.schedules.end(), searched.schedules.begin(),
                                  searched.schedules.end());
  else
    print_message(
        "bubblescope: schedules that search for an order are left out of so many "
        "configurations; '--schedules all,searched' includes them\n");
}

/// Leaves out schedules that the profile has in no shape: none of their memory and times count.
void leave_to_profile(PlanOptions& options) {
  std::erase_if(options.axes.schedules, [&](const std::string& name) {
    if (refuse_profile(find_schedule(name), options.predict.shape.profile).empty()) return false;
    options.not_in_profile.push_back(name);
    return true;
  });
}

/// Groups the refusals of each schedule. Shows the configuration that lacks the least memory, or
/// else the first.
std::vector<traces::Refusal> group_refusals(const std::vector<Configuration>& configurations,
                                            const std::vector<Outcome>& outcomes) {
  std::map<std::string, traces::Refusal> of_schedule;
  const Outcome nothing;
  std::map<std::string, const Outcome*> closest;
  for (std::size_t at = 0; at < outcomes.size(); ++at) {
    const Outcome& outcome = outcomes[at];
    if (outcome.refusal.empty()) continue;
    traces::Refusal& refused = of_schedule[configurations[at].schedule];
    const bool is_first = refused.configurations++ == 0;
    const Outcome*& so_far =
        closest.try_emplace(configurations[at].schedule, &nothing).first->second;
    const bool is_closer = outcome.is_closer_than(*so_far);
    if (!is_first && !is_closer) continue;
    refused.schedule = configurations[at].schedule;
    refused.reason = outcome.refusal;
    if (!is_closer) continue;
    so_far = &outcome;
    refused.closest = configurations[at];
  }
  std::vector<traces::Refusal> refusals;
  for (auto& [schedule, refused] : of_schedule) refusals.push_back(std::move(refused));
  return refusals;
}

/// Drops plans that agree in everything but the name of the split or how far ahead weights are
/// gathered, or on one rank the schedule; the first stays. On one rank, every schedule except GPipe
/// gives the same plan.
std::vector<Plan> drop_duplicates(std::vector<Plan> ranked) {
  std::set<std::string> seen;
  std::erase_if(ranked, [&](const Plan& plan) {
    const Configuration& which = plan.configuration;
    const Shape& shape = which.shape;
    if (shape.ranks > 1 && plan.layout.empty()) return false;
    const auto key = fmt::format(
        "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", which.tensor, which.data, which.expert,
        which.expert_tensor, which.context, which.micro_batch_size,
        static_cast<int>(which.recompute), to_text(which.modules), which.send_budget,
        which.lookahead.has_value(), shape.microbatches, shape.slices, plan.step, plan.memory(),
        shape.ranks == 1
            ? ""
            : fmt::format("{} {} {} {}", which.schedule, shape.ranks, shape.chunks, plan.layout));
    return !seen.insert(key).second;
  });
  return ranked;
}

/// If some plans fit with 32-bit gradients, refuses those that do not, because the precision of
/// gradients is up to the training code. Flags that choose the gradients override this.
std::vector<Outcome> use_one_gradient_type(std::vector<Outcome> outcomes) {
  const auto is_plan = [](const Outcome& outcome) {
    return outcome.plan && outcome.refusal.empty();
  };
  const bool any_full = std::any_of(outcomes.begin(), outcomes.end(), [&](const Outcome& outcome) {
    return is_plan(outcome) && outcome.plan->gradients == Gradients::kFp32;
  });
  if (!any_full) return outcomes;
  for (Outcome& outcome : outcomes)
    if (is_plan(outcome) && outcome.plan->gradients.value_or(Gradients::kFp32) != Gradients::kFp32)
      outcome.refusal = fmt::format("fits only with --gradients {}",
                                    name_of(kGradientFormats, *outcome.plan->gradients));
  return outcomes;
}

/// Other plans are so many percent slower than the best, so it must take time.
void expect_time(const Plan& best) {
  if (best.step == 0)
    throw Error(
        fmt::format("the best plan, {} on {}, takes no time, so no other can be compared with it; "
                    "give ops times above 0",
                    best.configuration.schedule, counted(best.configuration.shape.ranks, "rank")));
}

traces::PlanTable tabulate(const PlanQuestion& question,
                           const std::vector<Configuration>& configurations,
                           std::vector<Outcome> outcomes) {
  traces::PlanTable table;
  table.configurations = std::count_if(outcomes.begin(), outcomes.end(),
                                       [](const Outcome& outcome) { return outcome.was_tried(); });
  table.covered = static_cast<std::int64_t>(outcomes.size()) - table.configurations;
  table.refusals = group_refusals(configurations, outcomes);
  for (Outcome& outcome : outcomes)
    if (outcome.plan && outcome.refusal.empty()) table.plans.push_back(*std::move(outcome.plan));
  table.plans = with_ties(drop_duplicates(rank_plans(std::move(table.plans))), 0);
  if (!table.plans.empty()) expect_time(table.plans.front());
  for (traces::Refusal& left_out : find_left_out(question, configurations, table))
    table.refusals.push_back(std::move(left_out));
  return table;
}

traces::TrainingSettings settings_of(const ModelOnDevices& on, const StepEnd& end) {
  const Parallelism& parallel = on.parallel;
  traces::TrainingSettings settings;
  settings.sequence_parallel = parallel.sequence_parallel;
  settings.zero_stage = parallel.zero_stage;
  settings.fp8 = on.matrices == MatrixType::kFp8;
  settings.recomputes_up_projections = on.model.latent && parallel.flash_attention;
  settings.overlaps_gradients = choose_model_update({}, end).reduction == GradReduction::kOverlap &&
                                on.assumptions.gradients_exposed < 1;
  settings.overlaps_tensor = on.assumptions.tensor_exposed < 1;
  if (parallel.zero_stage > 0) settings.shard_ranks = parallel.shard_ranks;
  return settings;
}

/// Adds the commands of the plans that are shown with one.
void add_commands(traces::PlanTable& table, const PlanOptions& options,
                  const PredictInputs& inputs) {
  const bool is_json = options.format == OutputFormat::kJson;
  if (!is_json && options.format != OutputFormat::kText) return;
  const std::optional<ModelOnDevices>& model = inputs.files().model;
  const bool has_experts = model && model->model.experts;
  const std::size_t shown = is_json ? options.top.value_or(table.plans.size()) : 1;
  for (std::size_t at = 0; at < std::min(shown, table.plans.size()); ++at)
    table.commands.push_back(simulate_command(options, table.plans[at], has_experts));
}

void print_table(traces::PlanTable table, const PlanOptions& options) {
  if (options.format == OutputFormat::kText) {
    const traces::DrawOptions terminal = detect_draw_options();
    const traces::PlanTextOptions shown{terminal.width, terminal.colour,
                                        terminal.fit && !options.wide, options.top.value_or(20)};
    print_output("{}", name_flags(traces::write_plan_text(table, shown)));
    return;
  }
  if (options.format == OutputFormat::kMegatron || options.format == OutputFormat::kTorchtitan) {
    const auto framework = options.format == OutputFormat::kMegatron
                               ? traces::Framework::kMegatron
                               : traces::Framework::kTorchtitan;
    const std::string text = traces::write_plan_config(table, framework, options.top.value_or(1));
    warn_of_other_runtime(framework, options.predict.model);
    if (framework == traces::Framework::kMegatron)
      note_unwritten_settings(*table.training, options.predict.model);
    print_output("{}", text);
    return;
  }
  if (options.top && *options.top < table.plans.size()) table.plans.resize(*options.top);
  print_output("{}", options.format == OutputFormat::kJson ? traces::write_plan_json(table)
                                                           : traces::write_plan_csv(table));
}

void warn_of_unused_numbers(const std::vector<std::string>& unused) {
  for (const std::string& each : unused)
    print_message("bubblescope: no configuration can use {}\n", each);
}

int show_plans(traces::PlanTable table, const PlanOptions& options, const PredictInputs& inputs) {
  const int status = table.plans.empty() ? 1 : 0;
  warn_of_plans(table.plans, inputs);
  if (options.predict.model.given() && table.configurations > 0)
    note_untried(table.plans, inputs, options);
  table.any_framework = options.predict.shape.profile == Profile::kNone;
  if (table.any_framework && status == 0 && options.format == OutputFormat::kText)
    table.not_in_pytorch_csv = find_pytorch_refusal(table.plans.front(), inputs);
  if (!options.svg.empty() && status == 0)
    write_and_report(options.svg, traces::write_heat_map_svg(table.plans));
  add_commands(table, options, inputs);
  print_table(std::move(table), options);
  return status;
}

/// Whether to compute lower bounds, which may take a third of the time. Text does not show them;
/// journals keep them for the command that prints the plan.
Detail choose_detail(const PlanOptions& options) {
  return options.format == OutputFormat::kText && !options.files.any() ? Detail::kBrief
                                                                       : Detail::kBriefWithBound;
}

SweepOptions sweep_options(const PlanOptions& options) {
  return {options.threads, make_progress_bar()};
}

int plan_model(PlanOptions& options) {
  ModelAxes axes = options.model_axes;
  axes.schedules = options.axes.schedules;
  axes.ranks = options.axes.ranks;
  axes.chunks = options.axes.chunks;
  const PredictInputs inputs = read_inputs(options.predict, {});
  const ModelPlanner planner(inputs, axes);
  const GivenFlag etp[] = {{"--etp", !axes.expert_tensor.empty(),
                            planner.model().model.experts.has_value(), "the model has no experts"}};
  report_unused(etp);
  axes.expert_tensor = planner.axes().expert_tensor;
  if (!options.predict.memory.cap.empty()) warn_of_cap_unit(options.predict.memory);
  note_heads(planner.model());
  if (options.predict.model.explain) {
    print_assumptions(planner.model());
    print_message(
        "sharing: not modelled; every device has its own link to other nodes, and messages in "
        "both directions and gradients are timed as if each had it alone; use 'simulate --network' "
        "for one plan, which takes ten times as long\n");
  }
  const std::vector<Configuration> configurations = planner.configurations();
  if (configurations.empty() && !axes.schedules.empty())
    throw Error(
        "none of --schedules accepts any of these shapes; 'bubblescope check' gives the reason for "
        "one");
  report_default_slices(axes.schedules, options.predict.shape);
  const Detail detail = choose_detail(options);
  const auto make_evaluate = [&]() -> Evaluate {
    return [evaluator = ModelEvaluator(planner, detail)](const Configuration& which) mutable {
      return evaluator.evaluate(which);
    };
  };
  const auto show = [&](std::vector<Outcome> outcomes) {
    warn_of_unused_numbers(find_unused_numbers(axes, &planner, configurations, outcomes));
    note_missing_memory(outcomes, axes.gpus, planner.find_multiple_of_devices());
    traces::PlanTable table =
        tabulate(options, configurations, use_one_gradient_type(std::move(outcomes)));
    table.training = settings_of(planner.model(), options.predict.cost.end);
    table.model = planner.model().name;
    table.reserves_memory = options.gives("--reserve-memory");
    if (const KnownErrors* errors = find_nearest_errors(planner.model()).known) {
      table.errors = *errors;
      if (!table.plans.empty() && table.plans.front().no_errors.empty())
        table.plans = with_ties(std::move(table.plans), errors->spread);
    }
    return show_plans(std::move(table), options, inputs);
  };
  return run_sweep(options.files, configurations, make_evaluate, sweep_options(options), show);
}

void note_noise(const PredictInputs& inputs) {
  if (!noise_of_costs(inputs)) return;
  print_message(
      "bubblescope: {} has noise, and plans are ranked without it; 'compare' shows the steps with "
      "it\n",
      inputs.flags().cost.file);
}

int plan_shapes(PlanOptions& options) {
  Axes& axes = options.axes;
  axes.slices = options.predict.shape.slices;
  axes.moe_overlap = options.predict.shape.moe_overlap;
  axes.profile = options.predict.shape.profile;
  report_defaults(axes, options.predict.shape);
  ModelAxes listed;
  listed.ranks = axes.ranks;
  listed.chunks = axes.chunks;
  if (axes.ranks.empty()) axes.ranks = {4};
  if (axes.microbatches.empty()) axes.microbatches = {8};
  add_searched(options);
  leave_to_profile(options);
  const std::vector<Configuration> configurations = combine(axes);
  if (configurations.empty() && !axes.schedules.empty())
    throw Error(
        "with these --vpp and --slices all of --schedules are other schedules; give 2 or more");
  const PredictInputs inputs = read_inputs(options.predict, {});
  note_noise(inputs);
  const WhatIf what_if(inputs, options.whole_model);
  const Detail detail = choose_detail(options);
  const auto make_evaluate = [&]() -> Evaluate {
    return [&](const Configuration& which) { return what_if.evaluate(which, detail); };
  };
  const auto show = [&](std::vector<Outcome> outcomes) {
    if (!configurations.empty())
      warn_of_unused_numbers(find_unused_numbers(listed, nullptr, configurations, outcomes));
    traces::PlanTable table = tabulate(options, configurations, std::move(outcomes));
    if (options.format != OutputFormat::kCsv) {  // CSV has no break-even points
      BreakEvens break_evens = find_break_evens(what_if, table.plans);
      table.break_evens = std::move(break_evens.found);
      table.break_even_best = std::move(break_evens.best);
      table.unaffected = std::move(break_evens.unaffected);
      table.not_compared = std::move(break_evens.left_out);
    }
    return show_plans(std::move(table), options, inputs);
  };
  return run_sweep(options.files, configurations, make_evaluate, sweep_options(options), show);
}

/// Says how far an interrupted plan has come, and how it is continued.
void report_interrupt(const InterruptedSweep& stopped, const std::string& journal,
                      const Arguments& arguments) {
  if (isatty(STDERR_FILENO) != 0) draw_progress("\r\x1b[K");
  if (journal.empty())
    print_message(
        "bubblescope: interrupted after {}; results were not saved (use --resume "
        "FILE)\n",
        counted(static_cast<std::int64_t>(stopped.done), "configuration"));
  else
    print_message("bubblescope: interrupted; {} now has {} more; this continues from there: {}\n",
                  journal, counted(static_cast<std::int64_t>(stopped.done), "configuration"),
                  format_own_command_line("plan", arguments));
}

int sweep_and_show(PlanOptions& options) {
  return options.predict.model.given() ? plan_model(options) : plan_shapes(options);
}

}  // namespace

int run_plan(const Arguments& arguments) {
  std::optional<PlanOptions> options = parse_plan_options(arguments);
  if (!options) return 0;
  if (!options->svg.empty())
    check_export_paths({{"svg", options->svg}}, options->format != OutputFormat::kText);
  if (!options->files.parts.empty() && options->flags.empty())
    static_cast<PlanQuestion&>(*options) =
        parse_plan_question(traces::read_arguments(options->files.parts.front()));
  options->axes.schedules =
      expand_schedules(options->schedules, options->sliced(), options->predict.model.given());
  warn_of_unused_shape(options->predict, options->axes.schedules);
  leave_to_profile(*options);
  options->files = find_journals(std::move(options->files), words_of(options->flags));
  if (has_interrupt_check()) return sweep_and_show(*options);
  const InterruptCatcher catcher;
  try {
    return sweep_and_show(*options);
  } catch (const InterruptedSweep& stopped) {
    report_interrupt(stopped, options->files.journal, arguments);
    end_by_interrupt();
  }
}

}  // namespace bubblescope::tools
