// Builds every schedule and predicts it beside the measured one.
#include "tools/commands/try_schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "schedules/search/schedule_search.h"
#include "sim/analysis/highest_peak.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/ir/op_kinds.h"
#include "sim/ir/quantile.h"
#include "sim/model/keep_workers.h"
#include "sim/model/restage.h"
#include "sim/predict/predict.h"
#include "sim/predict/shared_work.h"
#include "tools/flags/field_names.h"
#include "tools/inputs/schedule_request.h"
#include "traces/text/time_axis.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kSearch = "search";
constexpr double kMinChange = 0.01;  ///< a note states changes of the step above this
constexpr std::int64_t kSearchEffort = 50'000'000;
constexpr std::chrono::seconds kSearchTime{10};

/// A predicted step: the shape that it is for, and its time in every scenario of the noise.
struct Tried {
  Prediction prediction;
  std::vector<double> steps = {};  ///< whole ones; one without noise
  double mean = 0;
  double peak = 0;
};

/// The measured job, and the work of a schedule besides its forwards and backwards.
struct FittedWork {
  const ValidSchedule& measured;
  const CostTable& costs;
  const SharedWork& shared;
};

bool has_backward(const StageEntry& stage) {
  return stage.backward || stage.input_grad || stage.weight_grad;
}

Tried predict_try(ValidSchedule schedule, const FittedWork& work) {
  const CostTable& costs = work.costs;
  if (!has_kind(*schedule, OpKind::kBackward) && !has_kind(*schedule, OpKind::kInputGrad) &&
      has_backward(costs.stages.back()))
    throw Error("has no backward, which the measured steps have: it trains nothing");
  if (has_kind(*schedule, OpKind::kInputGrad) && !costs.stages.front().input_grad)
    throw Error("splits the backward, which the trace shows whole; --split-b 0.5 would halve it");
  Config config;
  config.costs = keep_workers(costs, *work.measured, *schedule);
  config.lower = work.shared.lower;
  config.moves = work.shared.moves;
  Tried tried{predict(std::move(schedule), config)};
  const BubbleReport& report = tried.prediction.report;
  const auto outside = static_cast<double>(report.job ? report.job->outside_pipeline : 0);
  if (report.noise)
    for (const Nanos makespan : report.noise->makespans)
      tried.steps.push_back(static_cast<double>(makespan) + outside);
  else
    tried.steps.push_back(static_cast<double>(report.makespan) + outside);
  for (const double step : tried.steps) tried.mean += step;
  tried.mean /= static_cast<double>(tried.steps.size());
  tried.peak = find_highest_peak(report).activations;
  return tried;
}

double per_microbatch(const Tried& tried, double step) {
  return step / static_cast<double>(tried.prediction.report.shape.microbatches);
}

traces::Interval interval_of(double mean, const std::vector<double>& values) {
  return {mean, quantile(values, 5), quantile(values, 95)};
}

traces::TryRow make_row(const std::string& name, const Tried& tried, const Tried& base) {
  const auto change = [&](double own, double of_base) {
    return per_microbatch(tried, own) / per_microbatch(base, of_base) - 1;
  };
  std::vector<double> changes;
  for (std::size_t at = 0; at < tried.steps.size(); ++at)
    changes.push_back(change(tried.steps[at], base.steps[at]));
  traces::TryRow row;
  row.schedule = name;
  row.microbatches = tried.prediction.report.shape.microbatches;
  row.step = interval_of(tried.mean, tried.steps);
  row.change = interval_of(change(tried.mean, base.mean), changes);
  row.peak_units = tried.peak;
  row.memory_ratio = base.peak == 0 ? 1 : tried.peak / base.peak;
  return row;
}

/// The chunks per rank: those of the measured schedule where this one can have as many.
std::int32_t choose_chunks(const ScheduleDef& def, const Shape& measured) {
  if (def.implied_chunks && !def.repeats_chunks) return *def.implied_chunks;
  const std::int32_t min_chunks = def.implied_chunks.value_or(def.default_chunks);
  const bool fits =
      measured.chunks >= min_chunks && measured.chunks % def.implied_chunks.value_or(1) == 0;
  return fits ? measured.chunks : min_chunks;
}

ScheduleRequest make_try_request(const ScheduleDef& def, const Schedule& measured,
                                 std::int32_t microbatches, const CostTable& costs) {
  PredictOptions flags;
  flags.shape.ranks = measured.shape.ranks;
  flags.shape.microbatches = microbatches;
  flags.shape.chunks = choose_chunks(def, measured.shape);
  flags.shape = drop_unused_flags(flags.shape, def);
  flags.cost.file = costs.file;
  return make_request(def, PredictInputs(std::move(flags), {.costs = costs}));
}

/// Returns the best order that holds no more micro-batches on any rank than the measured one.
ValidSchedule search_order(const ValidSchedule& measured, std::int32_t microbatches, double peak,
                           const CostTable& costs) {
  ScheduleDef def;
  def.name = kSearch;
  def.implied_chunks = 1;
  def.reads_costs = true;
  ScheduleRequest request = make_try_request(def, *measured, microbatches, costs);
  const auto cap = static_cast<Millionths>(std::ceil(peak)) * kWhole;
  request.memory.cap.assign(static_cast<std::size_t>(measured->shape.ranks), cap);
  schedules::SearchGoal goal;
  goal.effort = kSearchEffort;
  const auto end = std::chrono::steady_clock::now() + kSearchTime;
  goal.stop = [end] { return std::chrono::steady_clock::now() >= end; };
  const std::vector<std::string> reasons = schedules::refuse_goal(request, goal);
  if (!reasons.empty()) throw Error(reasons.front());
  return require_valid(schedules::search_schedule(request, goal).schedule);
}

ValidSchedule build_try(const std::string& name, const ValidSchedule& measured,
                        std::int32_t microbatches, double peak, const CostTable& costs) {
  if (measured->side_stages > 0 && (name == kSearch || !find_schedule(name).splits_output_layer))
    throw Error(
        "has the output layer on one rank; the trace shows the time of its shards, and not what "
        "the whole of it takes there");
  if (name == kSearch) {
    if (!costs.stages.front().input_grad)
      throw Error("splits the backward, which the trace shows whole; --split-b 0.5 would halve it");
    return search_order(measured, microbatches, peak, costs);
  }
  const ScheduleDef& def = find_schedule(name);
  if (def.splits_output_layer && measured->side_stages == 0)
    throw Error("splits the output layer, whose time the trace does not show by itself");
  return build_schedule(def, make_try_request(def, *measured, microbatches, costs));
}

/// Returns the makespan with these costs, of one replica and without noise.
double find_makespan(const ValidSchedule& schedule, const FittedWork& work, CostTable costs) {
  Config config;
  config.lower = work.shared.lower;
  costs.noise.reset();
  costs.replicas.clear();
  config.costs = std::move(costs);
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
      "; the first and the last count as having {}; with {} micro-batches the step is {}, which "
      "its interval covers",
      summary_of(kStageEnds, work.costs.ends), tried.schedule->shape.microbatches, others);
}

void add_note(traces::Tries& tries, std::string note) {
  if (std::find(tries.notes.begin(), tries.notes.end(), note) == tries.notes.end())
    tries.notes.push_back(std::move(note));
}

/// Nothing shows how the work of a stage is distributed within it, nor in what way the ends differ
/// from the other stages: all cases lie in the row's interval.
void note_restaging(traces::Tries& tries, const FittedWork& work, const Prediction& tried,
                    traces::TryRow& row) {
  const CostTable& costs = work.costs;
  if (!is_restaged(costs, *tried.schedule)) return;
  std::string note = fmt::format(
      "{} has {} stages, the trace {}: the work of each counts as spread evenly within it",
      tried.schedule->name, tried.schedule->stages_per_pipeline(), costs.stages.size());
  if (restages_ends(costs, *tried.schedule)) note += try_other_ends(work, tried, row);
  add_note(tries, std::move(note));
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
void note_unused_links(traces::Tries& tries, const FittedWork& work, const Prediction& tried,
                       traces::TryRow& row) {
  if (work.costs.links.empty()) return;
  const auto slowest = std::max_element(work.costs.links.begin(), work.costs.links.end(),
                                        [](const LinkEntry& left, const LinkEntry& right) {
                                          return left.transfer.latency < right.transfer.latency;
                                        });
  if (slowest->transfer.latency <= work.costs.message.latency) return;
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
  if (unused.empty()) return;
  const double usual = find_makespan(tried.schedule, work, work.costs);
  const double change =
      usual == 0 ? 0 : std::max(0.0, find_makespan(tried.schedule, work, costs) / usual - 1);
  widen(row.step, 0, 0, change);
  widen(row.change, 1, 0, change);
  if (change <= kMinChange) return;
  add_note(tries, fmt::format(
                      "{} sends from {}, which the measured steps never did: these messages "
                      "take the usual {}; if they took {}, as from rank {} to rank {}, the step "
                      "would be {:.1f} % longer, which its interval covers",
                      tried.schedule->name, unused, traces::format_time(work.costs.message.latency),
                      traces::format_time(slowest->transfer.latency), slowest->from, slowest->to,
                      100 * change));
}

}  // namespace

TriedSchedules try_schedules(const ValidSchedule& measured, const LowerOptions& lower,
                             const CostTable& costs, const TryOptions& options) {
  for (const std::string& name : options.schedules)
    if (name != kSearch) find_schedule(name);
  const SharedWork measured_work{lower, {}};
  const Tried base = predict_try(measured, {measured, costs, measured_work});
  TriedSchedules tried;
  tried.tries.rows.push_back(make_row(measured->name, base, base));
  std::vector<std::int32_t> counts = options.microbatches;
  if (counts.empty()) counts.push_back(measured->shape.microbatches);
  double shortest = 0;
  for (const std::string& name : options.schedules)
    for (const std::int32_t count : counts) {
      try {
        ValidSchedule schedule = build_try(name, measured, count, base.peak, costs);
        const SharedWork shared = find_shared_work(measured, lower, schedule);
        const FittedWork work{measured, costs, shared};
        Tried one = predict_try(std::move(schedule), work);
        traces::TryRow made = make_row(name, one, base);
        note_restaging(tried.tries, work, one.prediction, made);
        note_unused_links(tried.tries, work, one.prediction, made);
        const traces::TryRow& row = tried.tries.rows.emplace_back(std::move(made));
        if (tried.best && row.change.mean >= shortest) continue;
        shortest = row.change.mean;
        tried.best = std::move(one.prediction.schedule);
        tried.tries.best = tried.tries.rows.size() - 1;
      } catch (const Error& refused) {
        traces::TryRow& row = tried.tries.rows.emplace_back();
        row.schedule = name;
        row.microbatches = count;
        row.problem = name_flags(refused.what());
      }
    }
  return tried;
}

}  // namespace bubblescope::tools
