// Divides the times of replicas into those of stages and of ranks.
#include "sim/model/keep_workers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/ir/quantile.h"
#include "sim/model/restage.h"

namespace bubblescope::inline sim {

namespace {

using Stages = std::vector<StageEntry>;

constexpr std::array kTimes{&StageEntry::backward,    &StageEntry::input_grad,
                            &StageEntry::weight_grad, &StageEntry::overlapped_pair,
                            &StageEntry::recompute,   &StageEntry::selective_recompute};

/// Whether every entry of the table is a stage of one rank.
bool is_of_ranks(const CostTable& table, const Schedule& measured) {
  return measured.pipelines == 1 && !has_lists(table) &&
         table.stages.size() == measured.rank_of_stage.size();
}

bool has_entries_for(const CostTable& table, const Schedule& schedule) {
  return !schedule.is_data_parallel() &&
         (is_restaged(table, schedule, schedule.side_stages) ||
          table.stages.size() == static_cast<std::size_t>(schedule.stages_per_pipeline()));
}

/// Returns the median over the replicas, stage by stage.
Stages find_usual(const CostTable& table) {
  Stages usual = table.stages;
  for (std::size_t stage = 0; stage < usual.size(); ++stage) {
    const auto median_of = [&](auto time_of) {
      std::vector<Nanos> times;
      for (const Stages& replica : table.replicas) times.push_back(time_of(replica[stage]));
      return quantile(std::move(times), 50);
    };
    usual[stage].forward = median_of([](const StageEntry& entry) { return entry.forward; });
    for (const auto member : kTimes)
      if (usual[stage].*member)
        usual[stage].*member =
            median_of([=](const StageEntry& entry) { return (entry.*member).value_or(0); });
  }
  return usual;
}

double compute_time(const StageEntry& stage) {
  return static_cast<double>(stage.forward + full_backward(stage).value_or(0));
}

/// [rank]: how long its stages take in a replica, over their usual time.
std::vector<double> find_slowness(const Stages& own, const Stages& usual,
                                  const Schedule& measured) {
  const auto ranks = static_cast<std::size_t>(measured.shape.ranks);
  std::vector<double> time(ranks, 0);
  std::vector<double> usual_time(ranks, 0);
  for (std::size_t stage = 0; stage < own.size(); ++stage) {
    const auto rank = static_cast<std::size_t>(measured.rank_of_stage[stage]);
    time[rank] += compute_time(own[stage]);
    usual_time[rank] += compute_time(usual[stage]);
  }
  for (std::size_t rank = 0; rank < ranks; ++rank)
    time[rank] = usual_time[rank] > 0 ? time[rank] / usual_time[rank] : 1;
  return time;
}

StageEntry slow_down(StageEntry stage, double factor) {
  const auto scaled = [factor](Nanos time) {
    return static_cast<Nanos>(std::llround(factor * static_cast<double>(time)));
  };
  stage.forward = scaled(stage.forward);
  for (const auto member : kTimes)
    if (stage.*member) stage.*member = scaled(*(stage.*member));
  return stage;
}

}  // namespace

CostTable keep_workers(const CostTable& table, const Schedule& measured, const Schedule& schedule) {
  const std::int32_t shards = schedule.side_stages;
  if (measured.side_stages != shards) return table;
  CostTable kept = shards > 0 ? restage(table, schedule, shards) : table;
  if (table.replicas.size() < 2 || measured.rank_of_stage == schedule.rank_of_stage ||
      measured.shape.ranks != schedule.shape.ranks || !is_of_ranks(table, measured) ||
      !has_entries_for(table, schedule))
    return kept;
  const Stages usual = find_usual(table);
  CostTable of_usual = table;
  of_usual.stages = usual;
  of_usual.replicas.clear();
  const Stages placed = restage(of_usual, schedule, shards).stages;
  kept.replicas.clear();
  for (const Stages& own : table.replicas) {
    const std::vector<double> slowness = find_slowness(own, usual, measured);
    Stages& replica = kept.replicas.emplace_back();
    for (std::size_t stage = 0; stage < schedule.rank_of_stage.size(); ++stage)
      replica.push_back(
          slow_down(placed[stage % placed.size()],
                    slowness[static_cast<std::size_t>(schedule.rank_of_stage[stage])]));
  }
  return kept;
}

}  // namespace bubblescope::inline sim
