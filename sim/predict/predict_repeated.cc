// Tries longer and longer short steps until one becomes steady.
#include "sim/predict/predict_repeated.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "sim/analysis/critical_path.h"
#include "sim/analysis/extend_step.h"
#include "sim/analysis/repeats.h"
#include "sim/analysis/steady_state.h"
#include "sim/engine/simulate.h"
#include "sim/ir/order_cycle.h"
#include "sim/ir/range.h"
#include "sim/model/cost_lists.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/find_timing.h"
#include "sim/predict/model_fit.h"

namespace bubblescope::inline sim {

namespace {

/// Whether nothing in the Config singles out micro-batches, and only a report follows from it.
bool may_repeat(const Config& config) {
  if (const auto* const table = std::get_if<CostTable>(&config.costs))
    if (table->noise || !table->replicas.empty() || table->outside_pipeline != 0 ||
        std::any_of(table->lists.begin(), table->lists.end(), varies_by_microbatch))
      return false;
  return !config.lower.waits_for_messages() && config.injections.empty() &&
         config.arrivals.empty() && !config.policy && !config.scenarios.noise.is_random() &&
         !config.scenarios.sensitivity && config.detail == Detail::kFull;
}

/// Whether all micro-batches of each stage share their values.
template <class Value>
bool is_uniform(const CostTensor<Value>& tensor) {
  constexpr std::int32_t kAny = std::numeric_limits<std::int32_t>::max();
  for (std::int32_t stage = 0; stage < tensor.stages(); ++stage)
    if (!tensor.covers(forward(stage, kAny))) return false;
  return true;
}

/// Whether all micro-batches have the same costs and memory.
bool are_uniform(const Models& models) {
  const CostModel& costs = models.costs;
  const MemoryModel& memory = models.memory;
  return costs.by_microbatch.empty() && is_uniform(costs.messages) && costs.parts.empty() &&
         memory.by_microbatch.empty() && !memory.counts_outputs && !memory.counts_gathered;
}

/// The cycles that the first short step keeps.
std::int64_t first_kept(const OrderCycle& cycle, const ShortSteps& limits) {
  return std::max(
      limits.first_cycles,
      (std::int64_t{limits.first_microbatches} + cycle.microbatches - 1) / cycle.microbatches);
}

/// Returns the fraction of the micro-batches that is left if so many cycles are removed.
double part_without(const Schedule& schedule, const OrderCycle& cycle, std::int64_t removed) {
  return 1 - static_cast<double>(removed * cycle.microbatches) / schedule.shape.microbatches;
}

/// Whether the first short step is short enough to be tried.
bool saves_enough(const Schedule& schedule, const OrderCycle& cycle, const ShortSteps& limits) {
  const std::int64_t removed = cycle.count - first_kept(cycle, limits);
  return removed > 0 && 1 - part_without(schedule, cycle, removed) >= limits.min_saving;
}

/// A short step and its times.
struct ShortStep {
  ValidSchedule schedule;
  Program program;
  Timeline timeline;
};

class RepeatedPrediction {
 public:
  RepeatedPrediction(const ValidSchedule& schedule, const Config& config, const OrderCycle& cycle)
      : schedule_(schedule), config_(config), cycle_(cycle) {
    prediction_models_ = find_models(schedule, config);
  }

  /// Whether a short step was found that is steady.
  bool find_short_step(const ShortSteps& limits) {
    if (!are_uniform(prediction_models_)) return false;
    const std::int64_t round = std::max(1, schedule_->shape.ranks / cycle_.microbatches);
    std::int64_t kept = first_kept(cycle_, limits);
    double tried = 0;  // as a part of the step
    do {
      if (try_without(cycle_.count - kept)) return true;
      tried += part_without(cycle_.count - kept);
      kept = std::max(2 * kept, kept + 3 * round);
    } while (kept < cycle_.count && tried + part_without(cycle_.count - kept) <= limits.max_tried);
    return false;
  }

  /// The report of the long step; empty where it cannot be shown to be exact.
  std::optional<BubbleReport> report() {
    const ShortStep& step = *short_step_;
    blockers_.emplace(step.program, step.timeline);
    const Repeats repeats{state_.cut - state_.period, state_.cut, copies_};
    if (!is_in_range(repeats)) return {};
    BubbleReport report = analyze(step.schedule, step.program, step.timeline,
                                  prediction_models_.memory, *blockers_, repeats);
    report.shape = schedule_->shape;
    auto path = extend_critical_path(extended());
    if (!path) return {};
    path_ = *std::move(path);
    if (config_.slack == Slack::kSkip) return report;
    report.slack = compute_slack(step.program, step.timeline, *blockers_);
    return keeps_slack(extended(), report.slack) ? std::optional(std::move(report)) : std::nullopt;
  }

  /// Completes a report, and adds the part of the long step that it names.
  Prediction complete(ValidSchedule schedule, BubbleReport report,
                      const std::vector<std::int32_t>& ranks) && {
    StepExcerpt excerpt = make_excerpt(extended(), path_, ranks);
    for (RankReport& rank : report.ranks)
      if (rank.peak.at) rank.peak.at = excerpt.place[*rank.peak.at];
    report.critical_path = std::move(excerpt.path);
    if (!report.slack.empty()) {
      std::vector<Nanos> slack;
      slack.reserve(excerpt.source.size());
      for (const InstructionId source : excerpt.source) slack.push_back(report.slack[source]);
      report.slack = std::move(slack);
    }
    Prediction step{
        {std::move(prediction_models_)}, std::move(schedule), std::move(excerpt.program)};
    step.timeline = std::move(excerpt.timeline);
    step.report = std::move(report);
    step.notes = find_notes(step.schedule, step.models.memory, config_);
    return step;
  }

  const Models& models() const { return prediction_models_; }

 private:
  ExtendedStep extended() const {
    return {short_step_->program, short_step_->timeline, *blockers_, state_, copies_};
  }

  double part_without(std::int64_t removed) const {
    return sim::part_without(schedule_, cycle_, removed);
  }

  /// Times the step without so many cycles, or without a few less: only whole periods are inserted.
  bool try_without(std::int64_t removed) {
    for (int tries = 0; tries < 3 && removed > 0; ++tries) {
      if (!time_without(removed)) return false;
      auto state = find_steady_state(short_step_->schedule, short_step_->program,
                                     short_step_->timeline, cycle_, removed);
      if (!state) return false;
      if (removed % state->cycles == 0) {
        copies_ = removed / state->cycles;
        state_ = *std::move(state);
        return true;
      }
      removed -= removed % state->cycles;
    }
    return false;
  }

  bool time_without(std::int64_t removed) {
    auto validated = validate_schedule(remove_cycles(schedule_, cycle_, removed));
    auto* const valid = std::get_if<ValidSchedule>(&validated);
    if (valid == nullptr) return false;
    auto lowered = lower(*valid, choose_lowering(*valid, config_));
    auto* const program = std::get_if<Program>(&lowered);
    if (program == nullptr) return false;
    const Timing timing = find_timing(*program, prediction_models_, config_);
    if (timing.traffic) return false;
    Timeline timeline = simulate(*program, timing).timeline;
    short_step_.emplace(ShortStep{std::move(*valid), std::move(*program), std::move(timeline)});
    return true;
  }

  /// Whether all sums of the long step are far from the limit, at which analyze() throws.
  bool is_in_range(const Repeats& repeats) const {
    const Timeline& timeline = short_step_->timeline;
    double sum = 0;
    for (InstructionId id = 0; id < short_step_->program.size(); ++id)
      sum += static_cast<double>(timeline.end[id] - timeline.start[id]) *
             static_cast<double>(repeats.count(timeline.start[id]));
    const StepBounds bounds = find_step_bounds(timeline);
    const double makespan =
        static_cast<double>(bounds.end - bounds.start) +
        static_cast<double>(repeats.copies) * static_cast<double>(repeats.period());
    const double limit = static_cast<double>(kMaxNanos) / 2;
    return sum < limit && makespan * short_step_->program.ranks < limit;
  }

  const ValidSchedule& schedule_;
  const Config& config_;
  const OrderCycle& cycle_;
  Models prediction_models_;
  std::optional<ShortStep> short_step_;
  std::optional<Blockers> blockers_;
  SteadyState state_;
  std::int64_t copies_ = 0;
  std::vector<ExtendedId> path_;
};

}  // namespace

std::variant<Prediction, ValidSchedule> predict_repeated(ValidSchedule schedule,
                                                         const Config& config,
                                                         const ChooseRanks& choose_ranks,
                                                         const ShortSteps& limits) {
  if (!may_repeat(config)) return schedule;
  const std::optional<OrderCycle> cycle = find_order_cycle(schedule);
  if (!cycle || !saves_enough(schedule, *cycle, limits)) return schedule;
  RepeatedPrediction repeated(schedule, config, *cycle);
  if (!repeated.find_short_step(limits)) return schedule;
  std::optional<BubbleReport> report = repeated.report();
  if (!report || would_shrink_gradients(config, repeated.models(), *report)) return schedule;
  const std::vector<std::int32_t> ranks = choose_ranks(*report);
  return std::move(repeated).complete(std::move(schedule), *std::move(report), ranks);
}

}  // namespace bubblescope::inline sim
