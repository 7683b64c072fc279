// PipeDream's planner beside one that looks at every split and every number of replicas.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "schedules/partition/replicated.h"

namespace bubblescope::tests {
namespace {

constexpr unsigned kSeed = 11;
constexpr Nanos kNone = std::numeric_limits<Nanos>::max();

using Stages = std::vector<std::pair<std::size_t, std::int32_t>>;  ///< layers and replicas of each

LayerGraph random_chain(std::mt19937& dice) {
  LayerGraph graph;
  const std::size_t layers = 1 + dice() % 8;
  for (std::size_t at = 0; at < layers; ++at) {
    graph.inputs.emplace_back();
    if (at > 0) graph.inputs.back().push_back(static_cast<std::int32_t>(at) - 1);
    graph.layers.push_back({.name = "l" + std::to_string(at),
                            .kind = {},
                            .forward = static_cast<Nanos>(dice() % 12),
                            .backward = static_cast<Nanos>(dice() % 3),
                            .activations = static_cast<Bytes>(dice() % 30),
                            .parameters = static_cast<Bytes>(dice() % 40)});
  }
  return graph;
}

schedules::ReplicationRequest random_request(std::mt19937& dice) {
  schedules::ReplicationRequest request;
  const std::size_t levels = 1 + dice() % 2;
  for (std::size_t level = 0; level < levels; ++level)
    request.levels.push_back({static_cast<std::int32_t>(1 + dice() % (levels == 1 ? 7 : 3)),
                              static_cast<Bytes>(1 + dice() % 9) * 1'000'000'000});
  request.straight = dice() % 4 == 0;
  request.counts_transfers = dice() % 2 == 0;
  if (dice() % 3 == 0) request.memory = 20 + dice() % 400;
  return request;
}

/// The rule of plan_replicated() as its header gives it, for layers in a row. Of equal plans it
/// takes the one with the fewest layers before the last stage, and then the fewest replicas of it.
class EveryChoice {
 public:
  EveryChoice(const LayerGraph& graph, const schedules::ReplicationRequest& request)
      : graph_(graph), request_(request), size_(graph.layers.size() + 1) {
    times_.assign(size_, std::vector<Nanos>(size_, 0));
    for (std::size_t from = 0; from < size_; ++from)
      for (std::size_t to = from + 1; to < size_; ++to)
        times_[from][to] = times_[from][to - 1] + graph.layers[to - 1].time();
  }

  std::pair<Nanos, Stages> plan() {
    for (std::size_t level = 0; level + 1 < request_.levels.size(); ++level) {
      level_ = level;
      std::vector<std::vector<Nanos>> outer = times_;
      for (std::size_t from = 0; from < size_; ++from)
        for (std::size_t to = from + 1; to < size_; ++to)
          outer[from][to] = best(from, to, request_.levels[level].workers).first;
      times_ = outer;
    }
    level_ = request_.levels.size() - 1;
    return best(0, size_ - 1, request_.levels[level_].workers);
  }

 private:
  Bytes sum(std::size_t from, std::size_t to, Bytes Layer::*of) const {
    Bytes all = 0;
    for (std::size_t at = from; at < to; ++at) all += graph_.layers[at].*of;
    return all;
  }

  Nanos stage_time(std::size_t from, std::size_t to, std::int32_t replicas,
                   std::int32_t used) const {
    const schedules::WorkerLevel& level = request_.levels[level_];
    const Bytes weights = sum(from, to, &Layer::parameters);
    if (times_[from][to] == kNone) return kNone;
    if (request_.memory) {
      const std::int32_t held = (level.workers - used + replicas + replicas - 1) / replicas;
      if (sum(from, to, &Layer::activations) + weights > *request_.memory / held) return kNone;
    }
    const std::int32_t below = level_ == 0 ? 1 : request_.levels[level_ - 1].workers;
    const Nanos reduce =
        std::llround(4e9 * (replicas - 1) * static_cast<double>(weights) /
                     (static_cast<double>(level.bytes_per_second) * replicas * below));
    const Nanos time = (times_[from][to] + reduce) / replicas;
    if (!request_.counts_transfers || from == 0) return time;
    return std::max(time, schedules::compute_transfer_time(graph_.layers[from - 1].activations,
                                                           level.bytes_per_second, replicas));
  }

  std::pair<Nanos, Stages> best(std::size_t from, std::size_t to, std::int32_t workers) const {
    std::pair<Nanos, Stages> found{kNone, {}};
    if (!request_.straight || workers == 1)
      found = {stage_time(from, to, workers, workers), {{to - from, workers}}};
    const std::int32_t most = request_.straight ? 1 : workers - 1;
    for (std::size_t split = from + 1; split < to && workers > 1; ++split)
      for (std::int32_t replicas = 1; replicas <= most; ++replicas) {
        auto [period, stages] = best(from, split, workers - replicas);
        period = std::max(period, stage_time(split, to, replicas, workers));
        if (period >= found.first) continue;
        stages.emplace_back(to - split, replicas);
        found = {period, stages};
      }
    return found;
  }

  const LayerGraph& graph_;
  const schedules::ReplicationRequest& request_;
  std::size_t size_;
  std::size_t level_ = 0;
  std::vector<std::vector<Nanos>> times_;
};

TEST(ReplicatedPartition, IsTheFirstOfTheBestOfEveryChoice) {
  std::mt19937 dice(kSeed);
  int planned = 0;
  for (int turn = 0; turn < 600; ++turn) {
    const LayerGraph graph = random_chain(dice);
    const schedules::ReplicationRequest request = random_request(dice);
    const auto [period, stages] = EveryChoice(graph, request).plan();
    const auto partition = schedules::plan_replicated(graph, request);
    ASSERT_EQ(partition.has_value(), period != kNone) << "seed " << kSeed << " turn " << turn;
    if (!partition) continue;
    ++planned;
    EXPECT_EQ(partition->period, period) << "seed " << kSeed << " turn " << turn;
    if (request.levels.size() > 1) continue;
    Stages found;
    for (const schedules::PartitionStage& stage : partition->stages)
      found.emplace_back(stage.layers.size(), stage.replicas);
    EXPECT_EQ(found, stages) << "seed " << kSeed << " turn " << turn;
  }
  EXPECT_GT(planned, 300);
}

}  // namespace
}  // namespace bubblescope::tests
