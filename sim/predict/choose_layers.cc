// Simulates the splits that may be better than the balanced one.
#include "sim/predict/choose_layers.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "sim/engine/simulate.h"
#include "sim/ir/lane_order.h"
#include "sim/model/balance_layers.h"
#include "sim/model/place_stages.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/find_timing.h"
#include "sim/predict/memory_caps.h"
#include "sim/predict/model_fit.h"
#include "sim/predict/models.h"

namespace bubblescope::inline sim {

namespace {

/// How many splits are simulated besides the balanced one, and how many of them in vain.
constexpr std::size_t kMaxTries = 6;
constexpr std::size_t kMaxMisses = 2;
/// A split, but for that of the other rule, is simulated if its bound is at least this fraction
/// below the best step.
constexpr double kMinGain = 0.005;

/// A simulated split, and its critical path as a bound on the others.
struct TimedSplit {
  LayerCounts counts;
  Nanos step = 0;
  std::vector<double> layer_time;  ///< [stage]: what one layer more adds to the critical path

  double bound(const LayerCounts& other) const {
    auto length = static_cast<double>(step);
    for (std::size_t stage = 0; stage < counts.size(); ++stage)
      length += layer_time[stage] * static_cast<double>(other[stage] - counts[stage]);
    return length;
  }
};

/// Whether the Config leaves the layers to choose_layers().
bool leaves_layers(const Config& config) {
  const auto* const model = std::get_if<ModelCosts>(&config.costs);
  if (model == nullptr || !model->tries_splits) return false;
  const Parallelism& parallel = model->on.parallel;
  return parallel.layers_of_stage.empty() && !parallel.ends.any() && !parallel.embedding_layers &&
         !parallel.head_layers;
}

/// Drops what slows or disturbs the step, because the layers depend on the healthy one alone.
Config keep_healthy_step(const Config& config) {
  Config healthy = config;
  static_cast<StepConditions&>(healthy) = {};
  healthy.arrivals.clear();
  healthy.slow_ranks.clear();
  healthy.scenarios = {};
  return healthy;
}

/// Whether that is the step which the Config asks for.
bool is_healthy(const Config& config) {
  return config.injections.empty() && config.arrivals.empty() && !config.policy &&
         config.slow_ranks.empty();
}

/// Returns the time of an op for one layer.
double time_of_layer(const PhaseTimes& layer, OpKind kind) {
  if (kind == OpKind::kForward || kind == OpKind::kRecompute) return layer.forward;
  if (kind == OpKind::kWeightGrad) return layer.weight_grad;
  return layer.input_grad + (kind == OpKind::kBackward ? layer.weight_grad : 0);
}

class SplitSearch {
 public:
  SplitSearch(const ValidSchedule& schedule, const Program& program, const Config& config)
      : schedule_(schedule),
        program_(program),
        previous_in_lane_(find_previous_in_lane(program)),
        config_(keep_healthy_step(config)) {}

  /// Finds the best split, and returns its step with the gradients with which the balanced one
  /// fits.
  ChosenStep::Timed find() && {
    time_balanced();
    if (tried_.front().counts.size() > 1 && balanced_fits_) {
      try_related();
      try_moves();
    }
    ModelOnDevices& on = timed_->models.placed->on;
    on.parallel.layers_of_stage = best().counts;
    on.trials = {static_cast<std::int32_t>(tried_.size()), best().step, tried_.front().step};
    return *std::move(timed_);
  }

 private:
  const TimedSplit& best() const { return tried_[best_]; }
  bool may_try() const { return tried_.size() <= kMaxTries; }

  /// Times the balanced split, with the largest gradients with which it fits.
  void time_balanced() {
    auto& model = std::get<ModelCosts>(config_.costs);
    model.on.parallel.layers_of_stage = model.balanced;
    timed_ = time();
    on_ = timed_->models.placed->on;
    loads_.emplace(on_, schedule_);
    const LayerCounts counts = count_layers(timed_->models.placed->step.first_layer);
    const BubbleReport peaks = find_peaks_of(*timed_);
    const auto smaller = model.may_shrink_gradients
                             ? choose_smaller_gradients(*timed_->models.placed, peaks)
                             : std::nullopt;
    balanced_fits_ = smaller || fits(timed_->models, peaks);
    if (smaller) {
      model.on.parallel.shrink_gradients(*smaller);
      timed_ = time();
    }
    note(counts, timed_->timeline);
  }

  /// Simulates the step with the layers of the Config.
  ChosenStep::Timed time() const {
    ChosenStep::Timed timed{find_models(schedule_, config_), {}, {}};
    timed.timing = find_timing(program_, timed.models);
    timed.timeline = simulate(program_, timed.timing).timeline;
    return timed;
  }

  BubbleReport find_peaks_of(const ChosenStep::Timed& timed) const {
    return report_peaks(schedule_, program_, timed.timeline, timed.models.memory);
  }

  static bool fits(const Models& models, const BubbleReport& peaks) {
    return find_fit(*models.placed, peaks).fits() &&
           find_ranks_over_cap(collect_peaks(peaks), models.memory).empty();
  }

  /// The other rule's split, and the balanced one with its surplus on the first stages of the last
  /// chunk where stages set the pace, else on the first stages of all.
  void try_related() {
    const LayerCounts balanced = tried_.front().counts;
    if (holds_several())
      if (const auto other = loads_->balance_otherwise(); other && may_win(*other, 0))
        try_split(other);
    const auto stages = static_cast<std::int32_t>(balanced.size());
    const std::int32_t chunk =
        loads_->holders().stages_set_pace ? std::max(0, stages - schedule_->shape.ranks) : 0;
    for (const std::int32_t from : {chunk, chunk + 1}) {
      const std::optional<LayerCounts> moved = move_surplus(balanced, from);
      if (moved && may_win(*moved, kMinGain)) try_split(moved);
    }
  }

  /// Whether any rank holds several stages; otherwise a balanced stage is a balanced rank.
  bool holds_several() const {
    const auto& stages_of_rank = loads_->holders().stages_of_rank;
    return std::any_of(stages_of_rank.begin(), stages_of_rank.end(),
                       [](const auto& stages) { return stages.size() > 1; });
  }

  /// Whether no critical path shows that this split wins less than a part of the step.
  bool may_win(const LayerCounts& counts, double gain) const {
    const double enough = (1 - gain) * static_cast<double>(best().step);
    return std::all_of(tried_.begin(), tried_.end(),
                       [&](const TimedSplit& each) { return each.bound(counts) < enough; });
  }

  /// Moves one layer at a time, where the critical paths promise the most.
  void try_moves() {
    while (may_try() && tried_.size() <= best_ + kMaxMisses) {
      const std::optional<LayerCounts> next = find_move();
      if (!next) return;
      try_split(*next);
    }
  }

  /// Returns the most promising split that differs in one layer from the best one.
  std::optional<LayerCounts> find_move() {
    bound_of_best_.clear();
    for (const TimedSplit& each : tried_) bound_of_best_.push_back(each.bound(best().counts));
    std::optional<LayerCounts> found;
    LayerCounts moved = best().counts;
    const std::vector<double>& own = best().layer_time;
    double lowest = (1 - kMinGain) * static_cast<double>(best().step);
    for (std::size_t from = 0; from < moved.size(); ++from) {
      if (moved[from] == 0) continue;
      for (std::size_t to = 0; to < moved.size(); ++to) {
        if (to == from || static_cast<double>(best().step) + own[to] - own[from] >= lowest)
          continue;
        const double bound = bound_move(from, to, lowest);
        if (bound >= lowest) continue;
        --moved[from];
        ++moved[to];
        if (!was_tried(moved)) {
          lowest = bound;
          found = moved;
        }
        ++moved[from];
        --moved[to];
      }
    }
    return found;
  }

  /// A lower bound on the step of the best split with one layer moved; any number from `enough` on
  /// if it is no lower than that.
  double bound_move(std::size_t from, std::size_t to, double enough) const {
    double bound = 0;
    for (std::size_t at = tried_.size(); at-- > 0 && bound < enough;)
      bound = std::max(
          bound, bound_of_best_[at] + tried_[at].layer_time[to] - tried_[at].layer_time[from]);
    return bound;
  }

  bool was_tried(const LayerCounts& counts) const {
    return std::any_of(tried_.begin(), tried_.end(),
                       [&](const TimedSplit& each) { return each.counts == counts; });
  }

  void try_split(const std::optional<LayerCounts>& counts) {
    if (!counts || !may_try() || was_tried(*counts)) return;
    auto& model = std::get<ModelCosts>(config_.costs);
    model.on.parallel.layers_of_stage = *counts;
    ChosenStep::Timed timed = time();
    note(*counts, timed.timeline);
    if (tried_.back().step >= best().step || !fits(timed.models, find_peaks_of(timed))) return;
    best_ = tried_.size() - 1;
    timed_ = std::move(timed);
  }

  void note(const LayerCounts& counts, const Timeline& timeline) {
    const std::vector<InstructionId> chain = find_chain(timeline);
    TimedSplit& timed = tried_.emplace_back(TimedSplit{counts, timeline.end[chain.front()], {}});
    timed.layer_time.resize(counts.size(), 0);
    for (const InstructionId id : chain) {
      const Op& op = program_.instructions[id].op;
      if (!is_compute(op.kind)) continue;
      const auto stage = static_cast<std::size_t>(op.stage % schedule_->stages_per_pipeline());
      if (stage < counts.size())
        timed.layer_time[stage] +=
            time_of_layer(loads_->mean_layer(static_cast<std::int32_t>(stage)), op.kind) /
            schedule_->shape.slices;
    }
  }

  /// Returns the instructions of a critical path, from the last one to end back to one that waits
  /// for nothing.
  std::vector<InstructionId> find_chain(const Timeline& timeline) const {
    const std::vector<Nanos>& ends = timeline.end;
    std::vector<InstructionId> chain;
    auto next =
        static_cast<InstructionId>(std::max_element(ends.begin(), ends.end()) - ends.begin());
    while (next != kNoInstruction) {
      chain.push_back(next);
      InstructionId latest = previous_in_lane_[next];
      const auto end_of = [&](InstructionId id) {
        return id == kNoInstruction ? Nanos{0} : timeline.end[id];
      };
      Nanos released = end_of(latest) + timeline.gap_before(next);
      for (const InstructionId dependency : program_.dependencies_of(next)) {
        if (end_of(dependency) <= released) continue;
        latest = dependency;
        released = end_of(dependency);
      }
      next = latest;
    }
    return chain;
  }

  const ValidSchedule& schedule_;
  const Program& program_;
  std::vector<InstructionId> previous_in_lane_;
  Config config_;
  ModelOnDevices on_;  ///< of loads_
  std::optional<PlacedLoads> loads_;
  std::vector<TimedSplit> tried_;
  std::optional<ChosenStep::Timed> timed_;  ///< the best one
  std::vector<double> bound_of_best_;       ///< [tried split]: its bound on the best one
  std::size_t best_ = 0;
  bool balanced_fits_ = false;
};

}  // namespace

ChosenStep choose_and_time_layers(const ValidSchedule& schedule, const Program& program,
                                  Config config) {
  if (!leaves_layers(config)) return {std::move(config)};
  ChosenStep::Timed timed = SplitSearch(schedule, program, config).find();
  const ModelOnDevices& chosen = timed.models.placed->on;
  ModelOnDevices& on = std::get<ModelCosts>(config.costs).on;
  on.parallel.layers_of_stage = chosen.parallel.layers_of_stage;
  on.trials = chosen.trials;
  const bool is_same = chosen.parallel.gradients == on.parallel.gradients && is_healthy(config);
  if (!is_same) return {std::move(config)};
  return {std::move(config), std::move(timed)};
}

Config choose_layers(const ValidSchedule& schedule, const Program& program, Config config) {
  return choose_and_time_layers(schedule, program, std::move(config)).config;
}

Config choose_layers(const ValidSchedule& schedule, Config config) {
  if (!leaves_layers(config)) return config;
  const std::variant<Program, Deadlock> lowered =
      lower(schedule, choose_lowering(schedule, config));
  const auto* const program = std::get_if<Program>(&lowered);
  return program == nullptr ? config : choose_layers(schedule, *program, std::move(config));
}

}  // namespace bubblescope::inline sim
