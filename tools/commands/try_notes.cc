// Predicts each schedule again under the other assumptions.
#include "tools/commands/try_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/lower.h"
#include "sim/model/keep_workers.h"
#include "sim/model/restage.h"
#include "sim/model/stage_entry.h"
#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::tools {

namespace {

constexpr double kMinChange = 0.01;  ///< a note states changes of the step above this

/// Returns the makespan with these costs, of one replica and without noise.
double find_makespan(const ValidSchedule& schedule, const FittedWork& work, CostTable costs) {
  Config config;
  config.lower = work.shared.lower;
  costs.noise.reset();
  costs.replicas.clear();
  config.costs = keep_workers(costs, *work.measured, *schedule);
  return static_cast<double>(predict(schedule, config).report.makespan);
}

/// The same if the first and the last stage differ from the others in this way.
double find_makespan(const ValidSchedule& schedule, const FittedWork& work, Ends ends) {
  CostTable costs = work.costs;
  costs.ends = ends;
  return find_makespan(schedule, work, std::move(costs));
}

/// The interval also covers steps that are shorter, or longer, by these fractions of at most 0 and
/// at least 0.
void widen(traces::Interval& interval, double base, double shortest, double longest) {
  const auto changed = [&](double value, double change) {
    return (base + value) * (1 + change) - base;
  };
  interval.p5 = changed(interval.p5, shortest);
  interval.p95 = changed(interval.p95, longest);
}

/// States how much longer the step is with other ends, and widens the row's intervals by that.
std::string try_other_ends(const FittedWork& work, const Prediction& tried, traces::TryRow& row) {
  std::string others;
  double shortest = 0;
  double longest = 0;
  const double taken = find_makespan(tried.schedule, work, work.costs.ends);
  for (const Named<Ends>& ends : kStageEnds) {
    if (ends.choice == work.costs.ends || taken == 0) continue;
    const double change = find_makespan(tried.schedule, work, ends.choice) / taken - 1;
    shortest = std::min(shortest, change);
    longest = std::max(longest, change);
    if (std::abs(change) > kMinChange)
      others +=
          fmt::format("{}{:.1f} % {} with {}", others.empty() ? "" : ", ", std::abs(100 * change),
                      change > 0 ? "longer" : "shorter", ends.summary);
  }
  widen(row.step, 0, shortest, longest);
  widen(row.change, 1, shortest, longest);
  if (others.empty()) return "";
  return fmt::format(
      "; the first and the last count as having {}; with {} the step is {}, which its interval "
      "covers",
      summary_of(kStageEnds, work.costs.ends),
      counted(tried.schedule->shape.microbatches, "micro-batch"), others);
}

using RankPair = std::pair<std::int32_t, std::int32_t>;

/// The pairs of ranks of which the first sends to the second.
std::set<RankPair> find_used_links(const Program& program) {
  std::set<RankPair> used;
  for (const Instruction& one : program.instructions)
    if (is_message(one)) used.emplace(one.rank, one.peer);
  return used;
}

/// Where links differ, those that the trace never used may be as slow as the slowest that it did.
/// Says by how much longer the step would be, and widens the row's intervals by that.
std::string try_unused_links(const FittedWork& work, const Prediction& tried, traces::TryRow& row) {
  if (work.costs.links.empty()) return {};
  const auto slowest = std::max_element(work.costs.links.begin(), work.costs.links.end(),
                                        [](const LinkEntry& left, const LinkEntry& right) {
                                          return left.transfer.latency < right.transfer.latency;
                                        });
  if (slowest->transfer.latency <= work.costs.message.latency) return {};
  const std::set<RankPair> measured = find_used_links(lower_or_refuse(work.measured, {}));
  CostTable costs = work.costs;
  std::string unused;
  for (const RankPair& link : find_used_links(tried.program)) {
    if (measured.count(link) > 0) continue;
    LinkEntry& entry = costs.links.emplace_back(*slowest);
    std::tie(entry.from, entry.to) = link;
    unused +=
        fmt::format("{}rank {} to rank {}", unused.empty() ? "" : ", ", link.first, link.second);
  }
  if (unused.empty()) return {};
  const double usual = find_makespan(tried.schedule, work, work.costs);
  const double change =
      usual == 0 ? 0 : std::max(0.0, find_makespan(tried.schedule, work, costs) / usual - 1);
  widen(row.step, 0, 0, change);
  widen(row.change, 1, 0, change);
  if (change <= kMinChange) return {};
  return fmt::format(
      "{} sends from {}, which the measured steps never did: these messages "
      "take the usual {}; if they took {}, as from rank {} to rank {}, the step "
      "would be {:.1f} % longer, which its interval covers",
      tried.schedule->name, unused, traces::format_time(work.costs.message.latency),
      traces::format_time(slowest->transfer.latency), slowest->from, slowest->to, 100 * change);
}

std::string describe_restaging(const std::string& names, bool are_several, std::int32_t stages,
                               std::int32_t measured) {
  return fmt::format("{} {} {}, the trace {}: the work of each counts as spread evenly within it",
                     names, are_several ? "have" : "has", counted(stages, "stage"), measured);
}

}  // namespace

std::string describe_layer_split(const FittedWork& work) {
  const std::vector<StageEntry>& stages = work.costs.stages;
  const std::size_t chain = stages.size() - static_cast<std::size_t>(work.measured->side_stages);
  double sum = 0;
  double longest = 0;
  for (std::size_t stage = 0; stage < chain; ++stage) {
    const auto time =
        static_cast<double>(stages[stage].forward + full_backward(stages[stage]).value_or(0));
    sum += time;
    longest = std::max(longest, time);
  }
  const double excess = sum > 0 ? longest * static_cast<double>(chain) / sum - 1 : 0;
  const std::string unequal =
      excess > kMinChange
          ? fmt::format(" (the longest stage takes {:.1f} % more than the mean)", 100 * excess)
          : "";
  return "layers are split among the stages as in the trace" + unequal +
         ": another split may take more or less time, which no interval covers";
}

void TryNotes::add_text(std::string text) {
  if (!text.empty() && std::find(texts_.begin(), texts_.end(), text) == texts_.end())
    texts_.push_back(std::move(text));
}

// Nothing shows how the work of a stage is distributed within it, nor in what way the ends differ
// from the other stages: all cases lie in the row's interval.
void TryNotes::add(const FittedWork& work, const Prediction& tried, traces::TryRow& row) {
  const Schedule& schedule = *tried.schedule;
  const std::int32_t shards = work.measured->side_stages;
  if (is_restaged(work.costs, schedule, shards)) {
    const std::int32_t stages = schedule.stages_per_pipeline() - shards;
    measured_stages_ = static_cast<std::int32_t>(work.costs.stages.size()) - shards;
    std::string ends;
    if (restages_ends(work.costs, schedule, shards)) ends = try_other_ends(work, tried, row);
    if (!is_short_)
      add_text(describe_restaging(schedule.name, false, stages, measured_stages_) + ends);
    widens_ends_ = widens_ends_ || !ends.empty();
    std::vector<std::string>& names = restaged_[stages];
    if (std::find(names.begin(), names.end(), schedule.name) == names.end())
      names.push_back(schedule.name);
  }
  add_text(try_unused_links(work, tried, row));
}

std::vector<std::string> TryNotes::list() && {
  if (!is_short_) return std::move(texts_);
  std::vector<std::string> notes;
  for (const auto& [stages, names] : restaged_)
    notes.push_back(
        describe_restaging(traces::list_words(names), names.size() > 1, stages, measured_stages_));
  if (widens_ends_)
    notes.emplace_back(
        "how the first and the last stage differ from others changes some of these steps by over "
        "1 %, which their intervals cover; tried by its name, a schedule says by how much");
  notes.insert(notes.end(), std::make_move_iterator(texts_.begin()),
               std::make_move_iterator(texts_.end()));
  return notes;
}

}  // namespace bubblescope::tools
