// The ranked table, and why it is ranked so.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/ir/bytes_text.h"
#include "traces/plan_table.h"
#include "traces/wording.h"

namespace bubblescope {

namespace {

/// Three or four digits that tell: "52.3 ms".
std::string short_time(double nanos) {
  const double size = std::abs(nanos);
  if (size >= 1e9) return fmt::format("{:.4g} s", nanos / 1e9);
  if (size >= 1e6 || size == 0) return fmt::format("{:.4g} ms", nanos / 1e6);
  if (size >= 1e3) return fmt::format("{:.4g} us", nanos / 1e3);
  return fmt::format("{:.0f} ns", nanos);
}

std::string memory_text(const Plan& plan) {
  if (!plan.peak_bytes) return fmt::format("{:.4g}", plan.peak_units);
  return bytes_text(*plan.peak_bytes);
}

/// A column that is shown only where it says something.
struct Column {
  std::string title;
  int width = 5;
  std::string (*cell)(const Plan&);
  bool shown = true;
};

std::vector<Column> columns_for(const std::vector<Plan>& plans) {
  const auto any = [&](auto&& differs) { return std::any_of(plans.begin(), plans.end(), differs); };
  const bool modelled = any([](const Plan& plan) { return plan.tokens_per_second.has_value(); });
  return {
      {"pp", 4, [](const Plan& p) { return std::to_string(p.configuration.shape.ranks); }},
      {"vpp", 4, [](const Plan& p) { return std::to_string(p.configuration.shape.chunks); }},
      {"tp", 4, [](const Plan& p) { return std::to_string(p.configuration.tensor); }, modelled},
      {"cp", 4, [](const Plan& p) { return std::to_string(p.configuration.context); },
       any([](const Plan& p) { return p.configuration.context > 1; })},
      {"ep", 4, [](const Plan& p) { return std::to_string(p.configuration.expert); },
       any([](const Plan& p) { return p.configuration.expert > 1; })},
      {"dp", 5, [](const Plan& p) { return std::to_string(p.configuration.data); }, modelled},
      {"mbs", 4, [](const Plan& p) { return std::to_string(p.configuration.micro_batch_size); },
       modelled},
      {"m", 6, [](const Plan& p) { return std::to_string(p.configuration.shape.microbatches); }},
      {"recompute", 10, [](const Plan& p) { return std::string(name(p.configuration.recompute)); },
       modelled},
      {"split", 9, [](const Plan& p) { return name_of(kLayerSplits, p.configuration.split); },
       any([](const Plan& p) { return p.configuration.split != LayerSplit::kBalanced; })},
      {"step", 10, [](const Plan& p) { return short_time(static_cast<double>(p.step)); }},
      {"per sample", 11, [](const Plan& p) { return short_time(p.nanos_per_sample()); }, !modelled},
      {"bubble", 8, [](const Plan& p) { return percent_text(p.bubble_ratio); }},
      {"mfu", 8, [](const Plan& p) { return percent_text(p.mfu.value_or(0)); }, modelled},
      {"peak", 10, [](const Plan& p) { return memory_text(p); }},
  };
}

/// Of the column of names, in all tables.
std::size_t name_width(const PlanTable& table) {
  std::size_t width = 15;
  for (const Plan& plan : table.plans) width = std::max(width, plan.configuration.schedule.size());
  for (const Refusal& refused : table.refusals) width = std::max(width, refused.schedule.size());
  return width;
}

std::string write_ranking(const PlanTable& table, const std::vector<std::size_t>& front,
                          std::size_t rows) {
  const std::vector<Column> columns = columns_for(table.plans);
  const std::size_t width = name_width(table);
  std::string text = fmt::format("   # {:<{}}", "schedule", width);
  for (const Column& column : columns)
    if (column.shown) text += fmt::format("{:>{}}", column.title, column.width);
  const auto add_row = [&](std::size_t at) {
    const Plan& plan = table.plans[at];
    text += fmt::format("\n{:>4} {:<{}}", at + 1, plan.configuration.schedule, width);
    for (const Column& column : columns)
      if (column.shown) text += fmt::format("{:>{}}", column.cell(plan), column.width);
    if (std::find(front.begin(), front.end(), at) != front.end()) text += "  *";
  };
  const std::size_t shown = std::min(rows, table.plans.size());
  for (std::size_t at = 0; at < shown; ++at) add_row(at);
  std::size_t further = 0;
  for (const std::size_t at : front) {
    if (at < shown) continue;
    if (further == 0) text += "\n     ... on the Pareto front:";
    if (++further > rows) break;
    add_row(at);
  }
  text += "\n* Pareto front: nothing else is as fast in as little memory\n";
  const std::string& layout = table.plans[0].layout;
  return layout.empty() ? text : text + "layers of #1: --layout '" + layout + "'\n";
}

/// "+12.3 %  dependency +1.2 ms, drain +0.4 ms": a plan against the best, per sample and rank.
std::string write_loss(const Plan& loser, const Plan& best) {
  const auto per_sample = [](const Plan& plan, Nanos time) {
    return static_cast<double>(time) / static_cast<double>(plan.configuration.samples());
  };
  std::vector<std::pair<double, std::string>> causes;
  const auto add = [&](Nanos mine, Nanos theirs, std::string_view cause) {
    const double more = per_sample(loser, mine) - per_sample(best, theirs);
    if (more > best.nanos_per_sample() * 0.0005) causes.emplace_back(more, cause);
  };
  add(loser.mean_busy, best.mean_busy, "work");
  for (std::size_t cause = 0; cause < kIdleCauses; ++cause)
    add(loser.mean_idle[cause], best.mean_idle[cause], name(static_cast<IdleCause>(cause)));
  std::stable_sort(causes.begin(), causes.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text =
      fmt::format("+{:<8}", percent_text(loser.nanos_per_sample() / best.nanos_per_sample() - 1));
  for (std::size_t at = 0; at < causes.size() && at < 3; ++at)
    text += fmt::format("{}{} +{}", at == 0 ? "" : ", ", causes[at].second,
                        short_time(causes[at].first));
  if (causes.empty())
    text += loser.memory() > best.memory() ? "as fast, but in more memory" : "as fast";
  return text;
}

std::string write_losers(const PlanTable& table) {
  const std::vector<std::size_t> best = best_of_each_schedule(table.plans);
  if (best.size() < 2 && table.refusals.empty()) return "";
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

/// "pp 8 tp 4 dp 2 m 32 mbs 1 full": what is not as it is everywhere else.
std::string short_words(const Configuration& which) {
  std::string text = fmt::format("pp {}", which.shape.ranks);
  const auto add = [&](const char* what, std::int32_t value) {
    if (value > 1) text += fmt::format(" {} {}", what, value);
  };
  add("vpp", which.shape.chunks);
  add("tp", which.tensor);
  add("cp", which.context);
  add("ep", which.expert);
  add("dp", which.data);
  text += fmt::format(" m {}", which.shape.microbatches);
  add("mbs", which.micro_batch_size);
  if (which.recompute != Recompute::kNone) text += fmt::format(" {}", name(which.recompute));
  if (which.split != LayerSplit::kBalanced)
    text += fmt::format(" {}", name_of(kLayerSplits, which.split));
  return text;
}

std::string write_refusals(const PlanTable& table) {
  std::string text;
  for (const Refusal& refused : table.refusals) {
    const std::string closest =
        refused.closest ? fmt::format(", closest {}", short_words(*refused.closest)) : "";
    text += fmt::format("  {:<{}} {}{}: {}\n", refused.schedule, name_width(table),
                        counted(refused.configurations, "configuration"), closest, refused.reason);
  }
  return text.empty() ? text : "\nno plans:\n" + text;
}

std::string write_break_evens(const PlanTable& table) {
  std::string text;
  for (const BreakEven& found : table.break_evens)
    text += fmt::format("  while --{:<3} {} {:<13} then {} (now {})\n", found.parameter,
                        found.at > found.now ? "<" : ">", to_text(found.at), found.rival.schedule,
                        to_text(found.now));
  if (!table.stays_best.empty())
    text += fmt::format("  whatever --{} is\n", fmt::join(table.stays_best, " or --"));
  if (text.empty()) return text;
  return fmt::format("\n{} is best\n", table.plans[0].configuration.schedule) + text;
}

}  // namespace

std::string write_plan_text(const PlanTable& table, const PlanTextOptions& options) {
  std::string text = fmt::format("{} of {} that were tried, best first\n",
                                 counted(static_cast<std::int64_t>(table.plans.size()), "plan"),
                                 counted(table.configurations, "configuration"));
  if (table.plans.empty()) return "no plan fits\n" + write_refusals(table);
  text += write_ranking(table, pareto_front(table.plans), options.rows);
  const std::string map = write_heat_map_text(table.plans, options);
  if (!map.empty()) text += "\n" + map;
  return text + write_break_evens(table) + write_losers(table) + write_refusals(table);
}

}  // namespace bubblescope
