// Balances layers by adding them one by one.
#include "sim/model/balance_layers.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

namespace bubblescope::inline sim {

namespace {

/// Sums of the same times in another order may differ by this part.
constexpr double kRounding = 1e-9;

/// The figures by which splits are compared.
struct SplitTimes {
  double first = 0;      ///< the slowest rank, or stage where stages set the pace
  double second = 0;     ///< the slowest stage
  std::size_t rank = 0;  ///< which one is the slowest
  std::size_t stage = 0;

  bool is_below(const SplitTimes& other) const {
    const auto is_less = [](double left, double right) { return left < right * (1 - kRounding); };
    if (is_less(first, other.first)) return true;
    return !is_less(other.first, first) && is_less(second, other.second);
  }
};

/// The time of a stage with `layers` layers that are alike.
using TimeOfAlike = std::function<double(std::int32_t stage, std::int64_t layers)>;

/// Adds layers that are alike, one after the other, to the stages after those whose layers are
/// fixed. Each goes to the stage that comes first in an order; no stage ever comes earlier by
/// getting more layers, so only the stage on top of the queue needs to be judged again.
class LayerFilling {
 public:
  LayerFilling(const StageHolders& holders, const BalanceProblem& problem, TimeOfAlike time,
               LayerCounts fixed = {})
      : holders_(holders),
        problem_(problem),
        time_of_alike_(std::move(time)),
        fixed_(std::move(fixed)) {}

  /// Fills such that the slowest stage is as fast as possible, or the slowest rank and then the
  /// slowest stage. nullopt if there is no room.
  std::optional<LayerCounts> fill() {
    if (holders_.stages_set_pace)
      return fill_by([this](std::int32_t stage) { return Loads{next_time(stage), 0}; });
    std::optional<LayerCounts> by_rank = fill_by([this](std::int32_t stage) {
      return Loads{slowest_rank_with_one_more(stage), next_time(stage)};
    });
    // Memory is costly to judge, and may leave no choice of ranks; ties alone level stages then.
    if (!by_rank || problem_.has_room) return by_rank;
    const double limit = *std::max_element(rank_time_.begin(), rank_time_.end()) * (1 + kRounding);
    std::optional<LayerCounts> by_stage = fill_by([this, limit](std::int32_t stage) {
      const double rank = slowest_rank_with_one_more(stage);
      return rank > limit ? kNever : Loads{next_time(stage), rank};
    });
    // Where a first layer costs more than others, that way may not place all layers.
    return by_stage ? by_stage : by_rank;
  }

 private:
  /// Two loads of a stage, in nanoseconds, the one that decides first.
  struct Loads {
    double first = 0;
    double second = 0;

    bool is_above(const Loads& other) const {
      return first != other.first ? first > other.first : second > other.second;
    }
  };

  static constexpr Loads kNever{std::numeric_limits<double>::infinity(), 0};

  /// Ties go to the later stage, but to the ends last.
  struct NextLayer {
    Loads loads;
    bool is_end = false;
    std::int32_t stage = 0;

    bool operator<(const NextLayer& other) const {  // the largest is on top of a queue
      if (loads.is_above(other.loads)) return true;
      if (other.loads.is_above(loads)) return false;
      return is_end != other.is_end ? is_end : stage < other.stage;
    }
  };

  template <class FindLoads>
  std::optional<LayerCounts> fill_by(const FindLoads& find_loads) {
    std::int64_t left = start();
    std::vector<NextLayer> stages;
    for (auto stage = static_cast<std::int32_t>(fixed_.size()); stage < holders_.stages(); ++stage)
      stages.push_back({find_loads(stage), stage == 0 || stage + 1 == holders_.stages(), stage});
    std::priority_queue<NextLayer> queue({}, std::move(stages));
    while (left > 0) {
      if (queue.empty() || queue.top().loads.first == kNever.first) return {};
      NextLayer next = queue.top();
      queue.pop();
      const Loads now = find_loads(next.stage);
      if (now.is_above(next.loads)) {
        next.loads = now;
      } else if (add_layer(next.stage)) {
        --left;
        next.loads = find_loads(next.stage);
      } else {
        next.loads = kNever;
      }
      queue.push(next);
    }
    return counts_;
  }

  /// Returns how many layers are left to add.
  std::int64_t start() {
    counts_ = fixed_;
    counts_.resize(holders_.ranks_of_stage.size(), 0);
    time_.clear();
    next_.clear();
    rank_time_.assign(holders_.stages_of_rank.size(), 0);
    std::int64_t first = 0;
    for (std::int32_t stage = 0; stage < holders_.stages(); ++stage) {
      const auto at = static_cast<std::size_t>(stage);
      const bool is_fixed = at < fixed_.size();
      time_.push_back(is_fixed ? problem_.time(stage, first, first + fixed_[at])
                               : time_of_alike_(stage, 0));
      next_.push_back(is_fixed ? time_.back() : time_of_alike_(stage, 1));
      add_to_ranks(stage, time_.back());
      first += counts_[at];
    }
    return problem_.layers - first;
  }

  bool add_layer(std::int32_t stage) {
    const auto at = static_cast<std::size_t>(stage);
    ++counts_[at];
    if (problem_.has_room && !problem_.has_room(stage, counts_)) {
      --counts_[at];
      return false;
    }
    add_to_ranks(stage, next_[at] - time_[at]);
    time_[at] = next_[at];
    next_[at] = time_of_alike_(stage, counts_[at] + 1);
    return true;
  }

  void add_to_ranks(std::int32_t stage, double time) {
    const auto at = static_cast<std::size_t>(stage);
    for (const std::int32_t rank : holders_.ranks_of_stage[at])
      rank_time_[static_cast<std::size_t>(rank)] += time * holders_.share[at];
  }

  double next_time(std::int32_t stage) const {
    const auto at = static_cast<std::size_t>(stage);
    return next_[at] * holders_.share[at];
  }

  double slowest_rank_with_one_more(std::int32_t stage) const {
    const auto at = static_cast<std::size_t>(stage);
    double slowest = 0;
    for (const std::int32_t rank : holders_.ranks_of_stage[at])
      slowest = std::max(slowest, rank_time_[static_cast<std::size_t>(rank)]);
    return slowest + (next_[at] - time_[at]) * holders_.share[at];
  }

  const StageHolders& holders_;
  const BalanceProblem& problem_;
  TimeOfAlike time_of_alike_;
  LayerCounts fixed_;  ///< of the first stages
  LayerCounts counts_;
  std::vector<double> time_;       ///< [stage]
  std::vector<double> next_;       ///< [stage]: with one layer more
  std::vector<double> rank_time_;  ///< [rank]
};

SplitTimes judge(const StageHolders& holders, const BalanceProblem& problem,
                 const LayerCounts& counts) {
  SplitTimes times;
  std::vector<double> of_rank(holders.stages_of_rank.size(), 0);
  std::int64_t first = 0;
  for (std::int32_t stage = 0; stage < holders.stages(); ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    const std::int64_t end = first + counts[at];
    const double time = problem.time(stage, first, end) * holders.share[at];
    if (time > times.second) {
      times.second = time;
      times.stage = at;
    }
    for (const std::int32_t rank : holders.ranks_of_stage[at])
      of_rank[static_cast<std::size_t>(rank)] += time;
    first = end;
  }
  const auto slowest = std::max_element(of_rank.begin(), of_rank.end());
  times.first = holders.stages_set_pace ? times.second : *slowest;
  times.rank = static_cast<std::size_t>(slowest - of_rank.begin());
  return times;
}

/// Splits models whose first layers differ from the others, which are alike: tries the numbers of
/// layers of the first stages around those of a known split, and fills the rest.
class LeadingStages {
 public:
  LeadingStages(const StageHolders& holders, const BalanceProblem& problem, LayerCounts known,
                std::int64_t unlike)
      : holders_(holders),
        problem_(problem),
        known_(known),
        unlike_(unlike),
        best_(std::move(known)),
        times_(judge(holders, problem, best_)) {}

  LayerCounts find() && {
    try_from({}, 0);
    return std::move(best_);
  }

 private:
  static constexpr std::int64_t kReach = 2;  ///< layers more or less than in the known split
  static constexpr int kMaxTries = 150;

  void try_from(const LayerCounts& fixed, std::int64_t first) {
    if (fixed.size() == known_.size() || ++tries_ > kMaxTries) return;
    const std::int64_t known = known_[fixed.size()];
    for (std::int64_t count = std::max<std::int64_t>(0, known - kReach);
         count <= std::min(known + kReach, problem_.layers - first); ++count) {
      LayerCounts next = fixed;
      next.push_back(count);
      if (first + count < unlike_)
        try_from(next, first + count);
      else
        try_split(next);
    }
  }

  void try_split(const LayerCounts& fixed) {
    if (++tries_ > kMaxTries) return;
    const TimeOfAlike time = [this](std::int32_t stage, std::int64_t layers) {
      return problem_.time(stage, std::max<std::int64_t>(0, problem_.layers - layers),
                           problem_.layers);
    };
    const std::optional<LayerCounts> filled = LayerFilling(holders_, problem_, time, fixed).fill();
    if (!filled) return;
    for (std::size_t stage = 0; stage < fixed.size() && problem_.has_room; ++stage)
      if (!problem_.has_room(static_cast<std::int32_t>(stage), *filled)) return;
    const SplitTimes times = judge(holders_, problem_, *filled);
    if (!times.is_below(times_)) return;
    times_ = times;
    best_ = *filled;
  }

  const StageHolders& holders_;
  const BalanceProblem& problem_;
  LayerCounts known_;
  std::int64_t unlike_;  ///< the first layers, which differ from the others
  LayerCounts best_;
  SplitTimes times_;
  int tries_ = 0;
};

/// How many of the first layers differ from the last one.
std::int64_t count_unlike(const BalanceProblem& problem) {
  const auto time_of = [&](std::int64_t layer) { return problem.time(0, layer, layer + 1); };
  const double last = time_of(problem.layers - 1);
  std::int64_t unlike = problem.layers;
  while (unlike > 0 && time_of(unlike - 1) == last) --unlike;
  return unlike;
}

/// Moves single layers from the slowest stages to others while that makes the split better, where
/// layers differ.
class LayerMoves {
 public:
  LayerMoves(const StageHolders& holders, const BalanceProblem& problem)
      : holders_(holders), problem_(problem) {}

  LayerCounts improve(LayerCounts counts) const {
    SplitTimes best = judge(holders_, problem_, counts);
    for (;;) {
      const SplitTimes before = best;
      LayerCounts better = counts;
      for (const std::size_t from : list_slowest(before))
        for (std::size_t to = 0; to < counts.size(); ++to) {
          if (from == to || counts[from] == 0) continue;
          LayerCounts moved = counts;
          --moved[from];
          ++moved[to];
          const SplitTimes times = judge(holders_, problem_, moved);
          if (!times.is_below(best) || !has_room(moved, to)) continue;
          best = times;
          better = std::move(moved);
        }
      if (!best.is_below(before)) return counts;
      counts = std::move(better);
    }
  }

 private:
  /// The stages of the slowest rank, and the slowest stage: no other move makes these faster.
  std::vector<std::size_t> list_slowest(const SplitTimes& times) const {
    std::vector<std::size_t> slowest{times.stage};
    for (const std::int32_t stage : holders_.stages_of_rank[times.rank])
      slowest.push_back(static_cast<std::size_t>(stage));
    return slowest;
  }

  bool has_room(const LayerCounts& counts, std::size_t stage) const {
    return !problem_.has_room || problem_.has_room(static_cast<std::int32_t>(stage), counts);
  }

  const StageHolders& holders_;
  const BalanceProblem& problem_;
};

}  // namespace

std::vector<std::int64_t> find_first_layers(const LayerCounts& counts) {
  std::vector<std::int64_t> first{0};
  for (const std::int64_t count : counts) first.push_back(first.back() + count);
  return first;
}

LayerCounts count_layers(const std::vector<std::int64_t>& first_layers) {
  LayerCounts counts;
  for (std::size_t stage = 0; stage + 1 < first_layers.size(); ++stage)
    counts.push_back(first_layers[stage + 1] - first_layers[stage]);
  return counts;
}

StageHolders find_stage_holders(const Schedule& schedule) {
  const std::int32_t stages = schedule.stages_per_pipeline() - schedule.side_stages;
  StageHolders holders;
  for (std::int32_t stage = 0; stage < stages && schedule.pipelines == 1; ++stage)
    holders.stages_set_pace =
        holders.stages_set_pace &&
        schedule.rank_of_stage[static_cast<std::size_t>(stage)] ==
            schedule.rank_of_stage[static_cast<std::size_t>(stage % schedule.shape.ranks)];
  if (schedule.pipelines > 1) holders.stages_set_pace = false;
  holders.ranks_of_stage.resize(static_cast<std::size_t>(stages));
  holders.stages_of_rank.resize(static_cast<std::size_t>(schedule.shape.ranks));
  for (std::int32_t stage = 0; stage < stages; ++stage)
    holders.share.push_back(1.0 / schedule.replicas(stage));
  for (std::int32_t stage = 0; stage < schedule.stages() - schedule.side_stages; ++stage)
    for (std::int32_t replica = 0; replica < schedule.replicas(stage); ++replica) {
      const std::int32_t rank = schedule.rank_of_stage[static_cast<std::size_t>(stage)] + replica;
      holders.stages_of_rank[static_cast<std::size_t>(rank)].push_back(stage % stages);
      holders.ranks_of_stage[static_cast<std::size_t>(stage % stages)].push_back(rank);
    }
  return holders;
}

std::optional<LayerCounts> balance_layers(const StageHolders& holders,
                                          const BalanceProblem& problem) {
  std::optional<LayerCounts> counts = LayerFilling(holders, problem, problem.mean_time).fill();
  if (!counts || !problem.time) return counts;
  counts = LayerMoves(holders, problem).improve(*std::move(counts));
  const std::int64_t unlike = count_unlike(problem);
  // Kinds that alternate have no leading layers, and stages that set the pace gain nothing from
  // them.
  if (2 * unlike > problem.layers || holders.stages_set_pace) return counts;
  return LeadingStages(holders, problem, *std::move(counts), unlike).find();
}

std::optional<LayerCounts> move_surplus(LayerCounts counts, std::int32_t from) {
  const std::size_t inner = counts.size() - 1;
  if (inner == 0) return {};
  const std::int64_t most = *std::max_element(counts.begin(), counts.end() - 1);
  std::int64_t surplus = 0;
  for (std::size_t stage = 0; stage < inner; ++stage) {
    if (counts[stage] < most) continue;
    --counts[stage];
    ++surplus;
  }
  for (std::size_t next = 0; next < inner && surplus > 0; ++next) {
    std::int64_t& count = counts[(static_cast<std::size_t>(from) + next) % inner];
    if (count + 1 != most) continue;
    ++count;
    --surplus;
  }
  return surplus == 0 && most > 0 ? std::optional(std::move(counts)) : std::nullopt;
}

}  // namespace bubblescope::inline sim
