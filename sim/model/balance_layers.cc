// Balances layers by adding them one by one.
#include "sim/model/balance_layers.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

namespace bubblescope::inline sim {

namespace {

/// Sums of the same times in another order may differ by this part.
constexpr double kRounding = 1e-9;

/// The figures by which splits are compared, the most important one first.
struct SplitTimes {
  double slowest_rank = 0;
  double slowest_stage = 0;
  std::size_t rank = 0;  ///< which one is the slowest
  std::size_t stage = 0;

  bool is_below(const SplitTimes& other) const {
    const auto is_less = [](double left, double right) { return left < right * (1 - kRounding); };
    if (is_less(slowest_rank, other.slowest_rank)) return true;
    return !is_less(other.slowest_rank, slowest_rank) &&
           is_less(slowest_stage, other.slowest_stage);
  }
};

/// Whether the slowest rank is the slowest stage.
bool has_one_stage_per_rank(const StageHolders& holders) {
  return std::all_of(holders.stages_of_rank.begin(), holders.stages_of_rank.end(),
                     [](const auto& stages) { return stages.size() <= 1; });
}

/// The time of a stage with so many layers that are alike.
using TimeOfAlike = std::function<double(std::int32_t stage, std::int64_t layers)>;

/// Adds layers that are alike, one after the other, to the stages behind those whose layers are
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

  /// Fills such that the slowest rank is as fast as possible, and then such that the slowest stage
  /// is while no rank takes longer than that. nullopt if there is no room.
  std::optional<LayerCounts> fill() {
    std::optional<LayerCounts> by_rank = fill_by([this](std::int32_t stage) {
      return std::pair(slowest_rank_with_one_more(stage), next_time(stage));
    });
    // Memory is costly to judge, and may leave no choice of ranks; ties alone level stages then.
    if (!by_rank || problem_.has_room || has_one_stage_per_rank(holders_)) return by_rank;
    const double limit = *std::max_element(rank_time_.begin(), rank_time_.end()) * (1 + kRounding);
    return fill_by([this, limit](std::int32_t stage) {
      const double rank = slowest_rank_with_one_more(stage);
      return rank > limit ? kNever : std::pair(next_time(stage), rank);
    });
  }

 private:
  using Load = std::pair<double, double>;  ///< in nanoseconds

  static constexpr Load kNever{std::numeric_limits<double>::infinity(), 0};

  /// Ties go to the later stage, but to the ends last.
  struct NextLayer {
    Load key;
    bool is_end = false;
    std::int32_t stage = 0;

    bool operator<(const NextLayer& other) const {  // the largest is on top of a queue
      return std::tuple(key, is_end, -stage) > std::tuple(other.key, other.is_end, -other.stage);
    }
  };

  template <class FindKey>
  std::optional<LayerCounts> fill_by(const FindKey& find_key) {
    std::int64_t left = start();
    std::priority_queue<NextLayer> queue;
    for (auto stage = static_cast<std::int32_t>(fixed_.size()); stage < holders_.stages(); ++stage)
      queue.push({find_key(stage), stage == 0 || stage + 1 == holders_.stages(), stage});
    while (left > 0) {
      if (queue.empty() || queue.top().key == kNever) return {};
      NextLayer next = queue.top();
      queue.pop();
      const Load now = find_key(next.stage);
      if (now > next.key) {
        next.key = now;
      } else if (add_layer(next.stage)) {
        --left;
        next.key = find_key(next.stage);
      } else {
        next.key = kNever;
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
    if (time > times.slowest_stage) {
      times.slowest_stage = time;
      times.stage = at;
    }
    for (const std::int32_t rank : holders.ranks_of_stage[at])
      of_rank[static_cast<std::size_t>(rank)] += time;
    first = end;
  }
  const auto slowest = std::max_element(of_rank.begin(), of_rank.end());
  times.slowest_rank = *slowest;
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
  static constexpr int kMaxTries = 500;

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
      return problem_.time(stage, problem_.layers - layers, problem_.layers);
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

StageHolders find_stage_holders(const Schedule& schedule) {
  const std::int32_t stages = schedule.stages_per_pipeline() - schedule.side_stages;
  StageHolders holders;
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
  if (2 * unlike > problem.layers) return counts;  // kinds alternate
  return LeadingStages(holders, problem, *std::move(counts), unlike).find();
}

}  // namespace bubblescope::inline sim
