// Dynamic programming over prefixes and workers, one level after the other.
#include "schedules/partition/replicated.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "schedules/partition/prefixes.h"
#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::schedules {

namespace {

constexpr Nanos kNone = std::numeric_limits<Nanos>::max();
constexpr std::size_t kMaxChoices = std::size_t{1} << 26;  ///< of a level: 1 GiB

std::int32_t rounded_up(std::int32_t count, std::int32_t part) { return (count + part - 1) / part; }

/// The time of a unit of the level below for the layers between two prefixes.
class StageTimes {
 public:
  explicit StageTimes(const Prefixes& prefixes)
      : size_(prefixes.all.size()), times_(size_ * size_, kNone) {
    for (std::size_t to = 0; to < size_; ++to)
      for (const std::int32_t from : prefixes.contained[to])
        set(from, static_cast<std::int32_t>(to),
            prefixes.all[to].time - prefixes.all[static_cast<std::size_t>(from)].time);
  }

  Nanos operator()(std::int32_t from, std::int32_t to) const {
    return times_[static_cast<std::size_t>(from) * size_ + static_cast<std::size_t>(to)];
  }
  void set(std::int32_t from, std::int32_t to, Nanos time) {
    times_[static_cast<std::size_t>(from) * size_ + static_cast<std::size_t>(to)] = time;
  }

 private:
  std::size_t size_;
  std::vector<Nanos> times_;
};

/// The units of a level that layers need at least for every stage to take less than `limit`: r
/// units of u workers do less than r u limit of work in that time. Work of the same number of units
/// as that of the question before takes no division.
class MinUnits {
 public:
  MinUnits(Nanos limit, std::int64_t workers_of_unit)
      : of_unit_(limit > kNone / workers_of_unit ? kNone : limit * workers_of_unit) {}

  std::int64_t operator()(Nanos work) {
    if (work < begin_ || work - begin_ >= of_unit_) {
      units_ = work / of_unit_ + 1;
      begin_ = (units_ - 1) * of_unit_;
    }
    return units_;
  }

 private:
  Nanos of_unit_;    ///< the work that one unit does
  Nanos begin_ = 0;  ///< of the work that needs `units_`
  std::int64_t units_ = 1;
};

/// The layers between two prefixes, on a number of workers of a level.
struct Part {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int32_t workers = 1;
};

/// One level: the best way to assign any part of the model to 1, 2, ... of its workers.
class LevelPlan {
 public:
  struct Choice {
    Nanos period = kNone;
    std::int32_t split = 0;     ///< the prefix before the last stage
    std::int32_t replicas = 0;  ///< of the last stage
  };

  LevelPlan(const Prefixes& prefixes, const ReplicationRequest& request, std::size_t level)
      : prefixes_(prefixes),
        request_(request),
        level_(request.levels[level]),
        below_(level == 0 ? 1 : request.levels[level - 1].workers),
        in_unit_(workers_below(request, level)),
        is_last_(level + 1 == request.levels.size()) {}

  /// The workers of one unit of the level.
  static std::int64_t workers_below(const ReplicationRequest& request, std::size_t level) {
    std::int64_t workers = 1;
    for (std::size_t inner = 0; inner < level; ++inner) workers *= request.levels[inner].workers;
    return workers;
  }

  void solve(const StageTimes& times) {
    const auto size = static_cast<std::int32_t>(prefixes_.all.size());
    const std::size_t choices = static_cast<std::size_t>(is_last_ ? 1 : size) *
                                prefixes_.all.size() * static_cast<std::size_t>(level_.workers);
    if (choices > kMaxChoices)
      throw Error(fmt::format(
          "{} in a row on {} of a level would take more memory than a plan may have; give a "
          "level inside others fewer workers, or join layers",
          counted(size - 1, "layer"), counted(level_.workers, "worker")));
    choices_.resize(choices);
    for (std::int32_t from = 0; from < (is_last_ ? 1 : size); ++from)
      for (std::int32_t to = from + 1; to < size; ++to)
        if (times(from, to) != kNone)
          for (std::int32_t workers = 1; workers <= level_.workers; ++workers)
            choice(from, to, workers) = best_choice(times, {from, to, workers});
  }

  const Choice& operator()(const Part& part) const {
    return choices_[index(part.from, part.to, part.workers)];
  }

  /// Returns the stages of a part, first to last, as parts on their replicas.
  std::vector<Part> stages(Part part) const {
    std::vector<Part> found;
    while (part.to != part.from) {
      const Choice& last = (*this)(part);
      found.push_back({last.split, part.to, last.replicas});
      part = {part.from, last.split, part.workers - last.replicas};
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

  /// Returns the time per replica to reduce a stage's gradients and gather its weights.
  Nanos reduce_time(const Part& stage) const {
    const Bytes parameters = prefixes_.all[static_cast<std::size_t>(stage.to)].parameters -
                             prefixes_.all[static_cast<std::size_t>(stage.from)].parameters;
    return std::llround(4e9 * (stage.workers - 1) * static_cast<double>(parameters) /
                        (static_cast<double>(level_.bytes_per_second) * stage.workers * below_));
  }

 private:
  std::size_t index(std::int32_t from, std::int32_t to, std::int32_t workers) const {
    const std::size_t row = is_last_ ? 0 : static_cast<std::size_t>(from);
    return (row * prefixes_.all.size() + static_cast<std::size_t>(to)) *
               static_cast<std::size_t>(level_.workers) +
           static_cast<std::size_t>(workers - 1);
  }
  Choice& choice(std::int32_t from, std::int32_t to, std::int32_t workers) {
    return choices_[index(from, to, workers)];
  }

  /// The time of a stage on its replicas; `used` workers are in use up to and including it.
  Nanos stage_time(const StageTimes& times, const Part& stage, std::int32_t used) const {
    const Prefix& before = prefixes_.all[static_cast<std::size_t>(stage.from)];
    const Prefix& after = prefixes_.all[static_cast<std::size_t>(stage.to)];
    const std::int32_t replicas = stage.workers;
    const Bytes parameters = after.parameters - before.parameters;
    if (request_.memory) {
      const Bytes each = after.activations - before.activations + parameters;
      const std::int32_t microbatches_held = rounded_up(level_.workers - used + replicas, replicas);
      if (each > *request_.memory / microbatches_held) return kNone;
    }
    Nanos time = (times(stage.from, stage.to) + reduce_time(stage)) / replicas;
    if (request_.counts_transfers && stage.from > 0)
      time =
          std::max(time, compute_transfer_time(before.output, level_.bytes_per_second, replicas));
    return time;
  }

  /// The time of the layers between two prefixes on one worker.
  Nanos work_between(std::int32_t from, std::int32_t to) const {
    return prefixes_.all[static_cast<std::size_t>(to)].time -
           prefixes_.all[static_cast<std::size_t>(from)].time;
  }

  /// The period of a part that ends in this stage, if it is below the limit; else one that is not.
  Nanos period_below(Nanos limit, const StageTimes& times, const Part& part,
                     const Part& last) const {
    const Nanos first = (*this)({part.from, last.from, part.workers - last.workers}).period;
    return first >= limit ? first : std::max(first, stage_time(times, last, part.workers));
  }

  /// A period that the part can have, so that longer ones need not be looked at: its last stage is
  /// chosen as for the part that ends one prefix earlier.
  Nanos known_period(const StageTimes& times, const Part& part) const {
    if (part.to - 1 <= part.from || times(part.from, part.to - 1) == kNone) return kNone;
    const Choice& near = (*this)({part.from, part.to - 1, part.workers});
    if (near.period == kNone) return kNone;
    Nanos known = kNone;
    for (std::int32_t split = near.split; split <= near.split + 1; ++split) {
      if (split <= part.from || split >= part.to || near.replicas >= part.workers ||
          times(part.from, split) == kNone || times(split, part.to) == kNone)
        continue;
      known = std::min(known, period_below(known, times, part, {split, part.to, near.replicas}));
    }
    return known;
  }

  /// Takes the first of the best choices, with the fewest layers before the last stage and then its
  /// fewest replicas.
  Choice best_choice(const StageTimes& times, const Part& part) const {
    Choice best;
    if (!request_.straight || part.workers == 1)
      best = {stage_time(times, part, part.workers), part.from, part.workers};
    if (part.workers == 1) return best;
    const std::int64_t max_replicas = request_.straight ? 1 : part.workers - 1;
    const Nanos known = known_period(times, part);
    Nanos limit = std::min(best.period, known == kNone ? kNone : known + 1);
    MinUnits units_before(limit, in_unit_);
    MinUnits units_of_last(limit, in_unit_);
    for (const std::int32_t split : prefixes_.contained[static_cast<std::size_t>(part.to)]) {
      if (limit == 0) break;  // nothing is shorter
      if (split <= part.from || times(part.from, split) == kNone) continue;
      const std::int64_t most =
          std::min(max_replicas, part.workers - units_before(work_between(part.from, split)));
      for (std::int64_t units = units_of_last(work_between(split, part.to)); units <= most;
           ++units) {
        const auto replicas = static_cast<std::int32_t>(units);
        const Nanos period = period_below(limit, times, part, {split, part.to, replicas});
        if (period >= limit) continue;
        best = {period, split, replicas};
        limit = period;
        units_before = units_of_last = MinUnits(limit, in_unit_);
      }
    }
    return best;
  }

  const Prefixes& prefixes_;
  const ReplicationRequest& request_;
  const WorkerLevel& level_;
  std::int32_t below_;    ///< workers in a unit, which share its all-reduce
  std::int64_t in_unit_;  ///< workers in a unit, at the innermost level
  bool is_last_;
  std::vector<Choice> choices_;
};

/// Plans the whole hierarchy.
class Planner {
 public:
  Planner(const LayerGraph& graph, const ReplicationRequest& request)
      : graph_(graph), request_(request), prefixes_(find_prefixes(graph, max_prefixes())) {}

  std::optional<Partition> plan() {
    StageTimes times(prefixes_);
    const auto size = static_cast<std::int32_t>(prefixes_.all.size());
    for (std::size_t level = 0; level < request_.levels.size(); ++level) {
      plans_.emplace_back(prefixes_, request_, level).solve(times);
      if (level + 1 == request_.levels.size()) break;
      for (std::int32_t to = 0; to < size; ++to)
        for (const std::int32_t from : prefixes_.contained[static_cast<std::size_t>(to)])
          times.set(from, to, plans_.back()({from, to, request_.levels[level].workers}).period);
    }
    const Part whole{0, size - 1, request_.levels.back().workers};
    Partition partition;
    partition.period = plans_.back()(whole).period;
    if (partition.period == kNone) return std::nullopt;
    partition.stages = stages_of(whole, request_.levels.size() - 1, {});
    return with_outputs(std::move(partition), graph_);
  }

 private:
  /// Returns the number of prefixes that can be planned quickly.
  std::size_t max_prefixes() const { return request_.levels.size() == 1 ? 2000 : 400; }

  /// Replicas of an inner part, and their time to reduce.
  struct Sharing {
    std::int32_t replicas = 1;
    Nanos reduce = 0;
  };

  /// A part's stages; `outer` lists the replications of the whole part, outermost first.
  std::vector<PartitionStage> stages_of(const Part& part, std::size_t level,
                                        const std::vector<Sharing>& outer) const {
    std::vector<PartitionStage> all;
    for (const Part& stage : plans_[level].stages(part)) {
      std::vector<Sharing> sharing = outer;
      sharing.push_back({stage.workers, plans_[level].reduce_time(stage)});
      if (level > 0) {
        const Part contained{stage.from, stage.to, request_.levels[level - 1].workers};
        const std::vector<PartitionStage> parts = stages_of(contained, level - 1, sharing);
        all.insert(all.end(), parts.begin(), parts.end());
        continue;
      }
      PartitionStage& added =
          all.emplace_back(stage_of(graph_, find_layers_between(prefixes_, stage.from, stage.to)));
      for (auto next = sharing.rbegin(); next != sharing.rend(); ++next) {
        added.replicas *= next->replicas;
        added.time = (added.time + next->reduce) / next->replicas;
      }
    }
    return all;
  }

  const LayerGraph& graph_;
  const ReplicationRequest& request_;
  Prefixes prefixes_;
  std::vector<LevelPlan> plans_;
};

}  // namespace

std::optional<Partition> plan_replicated(const LayerGraph& graph,
                                         const ReplicationRequest& request) {
  return Planner(graph, request).plan();
}

std::vector<std::int32_t> in_flight(const Partition& partition) {
  std::vector<std::int32_t> microbatches_held(partition.stages.size(), 0);
  std::int32_t workers = 0;
  for (std::size_t stage = partition.stages.size(); stage-- > 0;) {
    workers += partition.stages[stage].replicas;
    microbatches_held[stage] = rounded_up(workers, partition.stages[stage].replicas);
  }
  return microbatches_held;
}

}  // namespace bubblescope::schedules
