// Partitions with one worker per stage.
#include "schedules/partition/bottleneck.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "schedules/partition/prefixes.h"

namespace bubblescope::schedules {

namespace {

constexpr Nanos kNone = std::numeric_limits<Nanos>::max();
constexpr std::size_t kMaxPrefixes = 4000;

class Bottleneck {
 public:
  Bottleneck(const LayerGraph& graph, std::int32_t stages, const std::optional<StageMemory>& memory)
      : graph_(graph),
        stages_(stages),
        memory_(memory),
        prefixes_(find_prefixes(graph, kMaxPrefixes)) {}

  std::optional<Partition> find() {
    const std::size_t size = prefixes_.all.size();
    std::vector<Nanos> before(size, kNone);
    before[0] = 0;
    for (std::int32_t stage = 0; stage < stages_; ++stage) {
      std::vector<Nanos> after(size, kNone);
      previous_prefix_.emplace_back(size, 0);
      for (std::size_t to = 1; to < size; ++to)
        for (const std::int32_t from : prefixes_.contained[to]) {
          if (before[static_cast<std::size_t>(from)] >= after[to]) continue;
          const Nanos time = std::max(before[static_cast<std::size_t>(from)],
                                      stage_time(stage, static_cast<std::size_t>(from), to));
          if (time >= after[to]) continue;
          after[to] = time;
          previous_prefix_.back()[to] = from;
        }
      before = std::move(after);
    }
    if (before.back() == kNone) return std::nullopt;
    return partition(before.back());
  }

 private:
  Nanos stage_time(std::int32_t number, std::size_t from, std::size_t to) const {
    const Prefix& first = prefixes_.all[from];
    const Prefix& last = prefixes_.all[to];
    if (memory_) {
      PartitionStage stage;
      stage.parameters = last.parameters - first.parameters;
      stage.activations = last.activations - first.activations;
      if (held(stage, static_cast<std::size_t>(number), *memory_) > memory_->limit) return kNone;
    }
    return last.time - first.time;
  }

  Partition partition(Nanos period) const {
    Partition partition;
    partition.period = period;
    auto to = static_cast<std::int32_t>(prefixes_.all.size()) - 1;
    for (std::size_t stage = previous_prefix_.size(); stage-- > 0;) {
      const std::int32_t from = previous_prefix_[stage][static_cast<std::size_t>(to)];
      partition.stages.push_back(stage_of(graph_, find_layers_between(prefixes_, from, to)));
      to = from;
    }
    std::reverse(partition.stages.begin(), partition.stages.end());
    return with_outputs(std::move(partition), graph_);
  }

  const LayerGraph& graph_;
  std::int32_t stages_;
  const std::optional<StageMemory>& memory_;
  Prefixes prefixes_;
  std::vector<std::vector<std::int32_t>>
      previous_prefix_;  ///< [stage][prefix after it]: the prefix before it
};

/// The state of torchgpipe's solver: the ends of the blocks, and the prefix sums of layer times.
class Blocks {
 public:
  Blocks(const LayerGraph& graph, std::int32_t blocks) {
    Nanos lightest_layer = kNone;
    Nanos heaviest_layer = 0;
    for (const Layer& layer : graph.layers) {
      lightest_layer = std::min(lightest_layer, layer.time());
      heaviest_layer = std::max(heaviest_layer, layer.time());
    }
    spread_ = std::max<Nanos>(heaviest_layer - lightest_layer, 1);
    sum_.push_back(0);
    for (const Layer& layer : graph.layers)
      sum_.push_back(sum_.back() + layer.time() - lightest_layer);
    for (std::int32_t block = 1; block < blocks; ++block)
      end_.push_back(graph.size() / blocks * block);
    end_.push_back(graph.size());
  }

  /// Moves layers towards the lightest block until the heaviest is at most one layer heavier.
  std::vector<std::int32_t> solve() {
    std::size_t heavy = heaviest();
    for (std::size_t light = lightest(); weight(heavy) > weight(light) + spread_;
         light = lightest()) {
      const std::size_t neighbour = heavy < light ? light - 1 : light + 1;
      if (heavy < light)
        --end_[neighbour];
      else
        ++end_[light];
      if (neighbour == heavy) heavy = heaviest();
    }
    std::vector<std::int32_t> counts;
    for (std::size_t block = 0; block < end_.size(); ++block)
      counts.push_back(end_[block] - begin(block));
    return counts;
  }

 private:
  std::int32_t begin(std::size_t block) const { return block == 0 ? 0 : end_[block - 1]; }
  Nanos weight(std::size_t block) const {
    return sum_[static_cast<std::size_t>(end_[block])] -
           sum_[static_cast<std::size_t>(begin(block))];
  }
  /// Returns the last of the heaviest blocks, as in torchgpipe.
  std::size_t heaviest() const {
    std::size_t found = 0;
    for (std::size_t block = 1; block < end_.size(); ++block)
      if (weight(block) >= weight(found)) found = block;
    return found;
  }
  std::size_t lightest() const {
    std::size_t found = 0;
    for (std::size_t block = 1; block < end_.size(); ++block)
      if (weight(block) < weight(found)) found = block;
    return found;
  }

  Nanos spread_ = 1;        ///< weight of the heaviest layer minus that of the lightest
  std::vector<Nanos> sum_;  ///< [layer]: weight of all layers before it
  std::vector<std::int32_t> end_;
};

}  // namespace

Bytes held(const PartitionStage& stage, std::size_t number, const StageMemory& memory) {
  return static_cast<Bytes>(memory.parameter_copies * static_cast<double>(stage.parameters)) +
         memory.in_flight[number] * stage.activations;
}

std::optional<Partition> min_bottleneck(const LayerGraph& graph, std::int32_t stages,
                                        const std::optional<StageMemory>& memory) {
  return Bottleneck(graph, stages, memory).find();
}

Partition make_torchgpipe_partition(const LayerGraph& graph, std::int32_t stages) {
  return partition_by_counts(graph, Blocks(graph, stages).solve());
}

}  // namespace bubblescope::schedules
