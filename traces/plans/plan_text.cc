// Writes the ranked table and the reasons for the ranking.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sim/ir/bytes_text.h"
#include "sim/ir/counted.h"
#include "sim/ir/send_budget.h"
#include "traces/plans/break_even_text.h"
#include "traces/plans/heat_map.h"
#include "traces/plans/plan_table.h"
#include "traces/plans/refusals_text.h"
#include "traces/plans/runs_in.h"
#include "traces/reports/known_errors_text.h"
#include "traces/text/fit_table.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

/// Formats a time with three or four significant digits: "52.3 ms".
std::string format_plan_time(double nanos) {
  const double size = std::abs(nanos);
  if (size >= 1e9) return fmt::format("{:.4g} s", nanos / 1e9);
  if (size >= 1e6 || size == 0) return fmt::format("{:.4g} ms", nanos / 1e6);
  if (size >= 1e3) return fmt::format("{:.4g} us", nanos / 1e3);
  return fmt::format("{:.0f} ns", nanos);
}

std::string memory_text(const Plan& plan) {
  if (!plan.peak_bytes) return fmt::format("{:.4g}", plan.peak_units);
  return format_bytes(*plan.peak_bytes);
}

/// Whether the fullest rank leaves less memory free than the error of predicted memory.
bool is_tight(const Plan& plan) {
  return plan.head_room && plan.peak_bytes && sim::is_tight(*plan.peak_bytes, *plan.head_room);
}

/// The memory that the fullest rank leaves free, in GiB.
std::string free_text(const Plan& plan) {
  return plan.head_room ? gibibytes_text(*plan.head_room) : "-";
}

std::string frameworks_text(const Plan& plan) {
  return fmt::format("{}", fmt::join(frameworks_of(plan.configuration), ","));
}

/// The micro-batches of a group, where the schedule's usual ones would delay it.
std::string group_text(const Configuration& which) {
  return which.shape.group_size ? fmt::format("{}", *which.shape.group_size) : "-";
}

/// A column that is shown only where its values differ.
struct PlanColumn {
  std::string title;
  /// If columns do not fit the terminal, the least important one is left out first. Columns that
  /// identify the plan are more important than its results; the numbers of data ranks and
  /// micro-batches follow from other columns.
  int importance = 0;
  std::string (*cell)(const Plan&);
  bool shown = true;
  bool left = false;
};

std::vector<PlanColumn> columns_for(const std::vector<Plan>& plans, bool any_framework) {
  const auto any = [&](auto&& differs) { return std::any_of(plans.begin(), plans.end(), differs); };
  const bool modelled = any([](const Plan& plan) { return plan.tokens_per_second.has_value(); });
  const auto small = [](const Plan& p) { return p.gradients.value_or(Gradients::kFp32); };
  return {
      {"pp", 98, [](const Plan& p) { return std::to_string(p.configuration.shape.ranks); }},
      {"vpp", 96, [](const Plan& p) { return std::to_string(p.configuration.shape.chunks); }},
      {"tp", 97, [](const Plan& p) { return std::to_string(p.configuration.tensor); }, modelled},
      {"cp", 95, [](const Plan& p) { return std::to_string(p.configuration.context); },
       any([](const Plan& p) { return p.configuration.context > 1; })},
      {"ep", 94, [](const Plan& p) { return std::to_string(p.configuration.expert); },
       any([](const Plan& p) { return p.configuration.expert > 1; })},
      {"etp", 93, [](const Plan& p) { return std::to_string(p.configuration.expert_tensor); },
       any([](const Plan& p) { return p.configuration.expert_tensor != p.configuration.tensor; })},
      {"dp", 45, [](const Plan& p) { return std::to_string(p.configuration.data); }, modelled},
      {"mbs", 92, [](const Plan& p) { return std::to_string(p.configuration.micro_batch_size); },
       modelled},
      {"m", 55, [](const Plan& p) { return std::to_string(p.configuration.shape.microbatches); }},
      {"recompute", 91, [](const Plan& p) { return recompute_text(p.configuration); }, modelled},
      {"slices", 87, [](const Plan& p) { return std::to_string(p.configuration.shape.slices); },
       any([](const Plan& p) { return p.configuration.shape.slices > 1; })},
      {"group", 86, [](const Plan& p) { return group_text(p.configuration); },
       any([](const Plan& p) { return p.configuration.shape.group_size.has_value(); })},
      {"budget", 88, [](const Plan& p) { return budget_text(p.configuration.send_budget); },
       any([](const Plan& p) { return p.configuration.send_budget > 0; })},
      {"ahead", 85, [](const Plan& p) { return lookahead_text(p.configuration); },
       any([](const Plan& p) { return p.configuration.lookahead.has_value(); })},
      {"gradients", 89,
       [](const Plan& p) {
         return p.gradients ? name_of(kGradientFormats, *p.gradients) : std::string("-");
       },
       any([&](const Plan& p) { return small(p) != Gradients::kFp32; })},
      {"split", 90, [](const Plan& p) { return name_of(kLayerSplits, p.configuration.split); },
       any([](const Plan& p) { return p.configuration.split != LayerSplit::kBalanced; })},
      {"step", kAlwaysShown,
       [](const Plan& p) { return format_plan_time(static_cast<double>(p.step)); }},
      {"outside", 60,
       [](const Plan& p) { return format_plan_time(static_cast<double>(p.outside_pipeline)); },
       any([](const Plan& p) { return p.outside_pipeline > 0; })},
      {"per sample", 99, [](const Plan& p) { return format_plan_time(p.nanos_per_sample()); },
       !modelled},
      {"bubble", 50, [](const Plan& p) { return format_percent(p.bubble_ratio); }},
      {"mfu", 80, [](const Plan& p) { return format_percent(p.mfu.value_or(0)); }, modelled},
      {"peak", 70, [](const Plan& p) { return memory_text(p); }},
      {"free", 75, [](const Plan& p) { return free_text(p); },
       any([](const Plan& p) { return p.head_room.has_value(); })},
      {"runs in", 40, frameworks_text, any_framework, true},
  };
}

/// The width of the column of names, in all tables.
std::size_t name_width(const PlanTable& table) {
  std::size_t width = 15;
  for (const Plan& plan : table.plans) width = std::max(width, plan.configuration.schedule.size());
  for (const Refusal& refused : table.refusals) width = std::max(width, refused.schedule.size());
  return width;
}

/// The plans that the table shows: the first of the ranking, then those of the Pareto front that
/// are not among them.
struct ShownPlans {
  std::vector<std::size_t> rows;
  std::size_t ranked = 0;  ///< how many of them come from the top of the ranking
  std::size_t hidden = 0;  ///< plans of the Pareto front that are not among them
};

ShownPlans shown_plans(const PlanTable& table, const std::vector<std::size_t>& front,
                       std::size_t max_rows) {
  ShownPlans shown;
  shown.ranked = std::min(max_rows, table.plans.size());
  for (std::size_t at = 0; at < shown.ranked; ++at) shown.rows.push_back(at);
  for (const std::size_t at : front) {
    if (at < shown.ranked) continue;
    if (shown.rows.size() < shown.ranked + max_rows)
      shown.rows.push_back(at);
    else
      ++shown.hidden;
  }
  return shown;
}

/// Whether the errors of published runs say how far off the best plan's time may be.
bool has_errors(const PlanTable& table) { return table.errors && table.plans[0].no_errors.empty(); }

std::vector<TableColumn> table_of(const PlanTable& table, const std::vector<std::size_t>& rows,
                                  const std::vector<std::size_t>& front) {
  std::vector<TableColumn> columns;
  const auto add = [&](std::string head, int importance, bool left, auto&& cell) {
    TableColumn& next = columns.emplace_back();
    next.head = std::move(head);
    next.importance = importance;
    next.left = left;
    for (const std::size_t at : rows) next.cells.push_back(cell(at));
  };
  add("#", kAlwaysShown, false, [&](std::size_t at) {
    const bool tie = has_errors(table) && at > 0 && table.plans[at].tie_group == 1;
    return fmt::format("{}{}", tie ? "~" : "", at + 1);
  });
  add("schedule", kAlwaysShown, true,
      [&](std::size_t at) { return table.plans[at].configuration.schedule; });
  for (const PlanColumn& column : columns_for(table.plans, table.any_framework))
    if (column.shown)
      add(column.title, column.importance, column.left,
          [&](std::size_t at) { return column.cell(table.plans[at]); });
  add("", kAlwaysShown, true, [&](std::size_t at) {
    const bool on_front = std::find(front.begin(), front.end(), at) != front.end();
    return std::string(on_front ? "*" : "") + (is_tight(table.plans[at]) ? "!" : "");
  });
  return columns;
}

/// States how far the times can be trusted, from the errors of the nearest published runs.
std::string write_errors(const PlanTable& table) {
  if (!table.training) return "";
  if (!has_errors(table))
    return fmt::format("How far off the time of #1 may be is unknown: {}.\n",
                       table.plans[0].no_errors);
  const KnownErrors& errors = *table.errors;
  const StepInterval interval = compute_interval(table.plans[0].step, errors);
  std::string text = fmt::format(
      "Expect {} to {} for #1: {}.\n", format_plan_time(static_cast<double>(interval.low)),
      format_plan_time(static_cast<double>(interval.high)),
      known_errors_text(errors, find_unpublished(table.plans[0], errors)));
  const auto ties = std::count_if(table.plans.begin(), table.plans.end(),
                                  [](const Plan& plan) { return plan.tie_group == 1; }) -
                    1;
  if (ties > 0)
    text += fmt::format(
        "~ {} within {} of #1: {}, because the errors of runs of one setup differ by as much among "
        "themselves; most of an error is common to all plans of a model on its devices.\n",
        counted(ties, "plan"), format_percent(errors.spread), ties == 1 ? "a tie" : "ties");
  return text;
}

/// The warning about plans that may not fit: "! 3 plans leave less than ...".
std::string write_tight(const PlanTable& table) {
  const auto tight = std::count_if(table.plans.begin(), table.plans.end(), is_tight);
  if (tight == 0) return "";
  return fmt::format(
      "! {} less than {} of {} memory free, by which predicted memory is off on published runs: "
      "{} may not fit{}.\n",
      counted(tight, "plan") + (tight == 1 ? " leaves" : " leave"), format_percent(kMemoryError),
      tight == 1 ? "its" : "their", tight == 1 ? "it" : "they",
      table.reserves_memory ? "" : " (`reserve_memory` 5% keeps more)");
}

/// Names the frameworks that have the best plan's schedule by name and, for every other framework,
/// the best plan that it has.
std::string write_frameworks(const PlanTable& table) {
  if (!table.any_framework) return "";
  const std::vector<std::string> best = frameworks_of(table.plans[0].configuration);
  std::string text = "runs in  ";
  const std::string& refusal = table.not_in_pytorch_csv;
  if (!best.empty())
    text += fmt::format("#1 in {}", fmt::join(best, ", "));
  else if (refusal.empty())
    text += "no framework has #1 by name, 'convert `to` pytorch-csv' hands it to PyTorch";
  else
    text += "no framework has #1 by name, and " + refusal.substr(0, refusal.find(';'));
  for (const std::string& framework : known_frameworks()) {
    const auto first = std::find_if(table.plans.begin(), table.plans.end(), [&](const Plan& plan) {
      return runs_in(plan.configuration, framework);
    });
    if (first == table.plans.begin() || first == table.plans.end()) continue;
    text += fmt::format(
        "; {} from #{} ({}, +{})", framework, first - table.plans.begin() + 1,
        first->configuration.schedule,
        format_percent(first->nanos_per_sample() / table.plans[0].nanos_per_sample() - 1));
  }
  return text + "; `profile` NAME plans for one alone\n";
}

std::string write_ranking(const PlanTable& table, const std::vector<std::size_t>& front,
                          const PlanTextOptions& options) {
  const ShownPlans shown = shown_plans(table, front, options.rows);
  const std::optional<int> width = options.fit ? std::optional(options.width) : std::nullopt;
  const FittedTable drawn = draw_table(table_of(table, shown.rows, front), width);
  std::string text;
  std::size_t line = 0;
  for (std::size_t at = 0; at < drawn.text.size();) {
    const std::size_t end = drawn.text.find('\n', at) + 1;
    if (line == shown.ranked + 1) text += "     ... on the Pareto front:\n";
    text += drawn.text.substr(at, end - at);
    at = end;
    ++line;
  }
  if (shown.hidden > 0)
    text +=
        fmt::format("     ... and {} more on the Pareto front: `top` N shows more\n", shown.hidden);
  text += describe_hidden(drawn.hidden);
  text += "* Pareto front: nothing else is as fast in as little memory\n" + write_tight(table) +
          write_errors(table) + write_frameworks(table);
  return table.commands.empty() ? text : text + "simulate #1: " + table.commands[0] + "\n";
}

/// Compares a plan with the best one, per sample and rank: "+12.3 %  dependency +1.2 ms, drain +0.4
/// ms, 0.3 ms less of all else". What is named adds up to the difference.
std::string write_loss(const Plan& loser, const Plan& best) {
  const auto per_sample = [](const Plan& plan, Nanos time) {
    return static_cast<double>(time) / static_cast<double>(plan.configuration.samples());
  };
  std::vector<std::pair<double, std::string>> causes;
  const auto add = [&](Nanos mine, Nanos other, std::string_view cause) {
    const double more = per_sample(loser, mine) - per_sample(best, other);
    if (more > best.nanos_per_sample() * 0.0005) causes.emplace_back(more, cause);
  };
  add(loser.mean_busy, best.mean_busy, "work");
  add(loser.outside_pipeline, best.outside_pipeline, "outside the pipeline");
  for (std::size_t cause = 0; cause < kIdleCauses; ++cause)
    add(loser.mean_idle[cause], best.mean_idle[cause], name(static_cast<IdleCause>(cause)));
  std::stable_sort(causes.begin(), causes.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text = fmt::format(
      "+{:<7} ", format_percent(loser.nanos_per_sample() / best.nanos_per_sample() - 1));
  double rest = loser.nanos_per_sample() - best.nanos_per_sample();
  for (std::size_t at = 0; at < causes.size() && at < 3; ++at) {
    text += fmt::format("{}{} +{}", at == 0 ? "" : ", ", causes[at].second,
                        format_plan_time(causes[at].first));
    rest -= causes[at].first;
  }
  if (!causes.empty() && std::abs(rest) > best.nanos_per_sample() * 0.0005)
    text += rest > 0 ? fmt::format(", all else +{}", format_plan_time(rest))
                     : fmt::format(", {} less of all else", format_plan_time(-rest));
  if (causes.empty())
    text += loser.memory() > best.memory() ? "as fast, but in more memory" : "as fast";
  return text;
}

std::string write_losers(const PlanTable& table) {
  const std::vector<std::size_t> best = find_best_of_each_schedule(table.plans);
  if (best.size() < 2) return "";
  std::string text = fmt::format("\nwhy others lose to {} (time per sample, mean of the ranks):\n",
                                 table.plans[0].configuration.schedule);
  for (const std::size_t at : best) {
    if (at == 0) continue;
    const Plan& plan = table.plans[at];
    text += fmt::format("  {:<{}} #{:<5} {}\n", plan.configuration.schedule, name_width(table),
                        at + 1, write_loss(plan, table.plans[0]));
  }
  return text;
}

}  // namespace

std::string recompute_text(const Configuration& configuration) {
  if (!configuration.modules.empty()) return to_text(configuration.modules);
  if (configuration.chooses_modules && configuration.recompute == Recompute::kSelective)
    return "modules";
  const std::string layers = to_text(configuration.recomputed);
  return std::string(name(configuration.recompute)) + (layers.empty() ? "" : " " + layers);
}

std::string find_unpublished(const Plan& plan, const KnownErrors& errors) {
  const Configuration& which = plan.configuration;
  return find_unpublished_schedule(which.schedule, which.shape.ranks, errors.experts);
}

std::string lookahead_text(const Configuration& configuration) {
  return configuration.lookahead ? to_string(*configuration.lookahead) : "none";
}

std::string write_plan_text(const PlanTable& table, const PlanTextOptions& options) {
  const std::string of_model = table.model.empty() ? "" : table.model + ": ";
  std::string text = fmt::format("{}{} of {} that {} tried, best first\n", of_model,
                                 counted(static_cast<std::int64_t>(table.plans.size()), "plan"),
                                 counted(table.configurations, "configuration"),
                                 table.configurations == 1 ? "was" : "were");
  if (table.covered > 0)
    text += fmt::format(
        "({} more differ only in the split of layers or in what they recompute, and would take as "
        "long or longer)\n",
        table.covered);
  if (table.plans.empty()) {
    text = of_model + "no plan fits\n" + write_refusals(table, name_width(table));
  } else {
    text += write_ranking(table, find_pareto_front(table.plans), options);
    const std::string map = write_heat_map_text(table.plans, options);
    if (!map.empty()) text += "\n" + map;
    text +=
        write_break_evens(table) + write_losers(table) + write_refusals(table, name_width(table));
  }
  return options.fit ? fold_lines(text, options.width) : text;
}

}  // namespace bubblescope::traces
