// Applies the rules by which frameworks split layers, and looks for arguments that give the split.
#include "traces/plans/framework_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "traces/costs/megatron_layout.h"

namespace bubblescope::traces {

namespace {

/// Whether the ends are where frameworks have them unless told: the embedding is on the first
/// stage, the loss and multi-token prediction on the last.
bool has_usual_ends(const LayerLayout& layout) {
  StageLayers others;
  for (std::size_t stage = 0; stage < layout.size(); ++stage) {
    const bool is_last = stage + 1 == layout.size();
    if (stage > 0) others.embeddings += layout[stage].embeddings;
    if (!is_last) others.losses += layout[stage].losses;
    if (!is_last) others.predictions += layout[stage].predictions;
  }
  return others == StageLayers{};
}

std::vector<std::int32_t> count_transformers(const LayerLayout& layout) {
  std::vector<std::int32_t> counts;
  for (const StageLayers& stage : layout) counts.push_back(stage.transformers);
  return counts;
}

/// The layers of Megatron's ranks, all of whose stages are equal.
struct RankLayers {
  std::int32_t first = 0;
  std::int32_t middle = 0;
  std::int32_t last = 0;
};

/// The ranks that Megatron's own rule makes these stages of; empty where it makes others.
std::optional<RankLayers> find_rank_layers(const LayerLayout& layout, std::int32_t ranks) {
  if (!has_usual_ends(layout)) return {};
  const std::vector<std::int32_t> counts = count_transformers(layout);
  const auto size = static_cast<std::size_t>(ranks);
  const auto chunks = static_cast<std::int32_t>(counts.size() / size);
  for (std::size_t stage = 0; stage < counts.size(); ++stage) {
    const std::size_t rank = stage % size;
    const bool is_middle = rank > 0 && rank + 1 < size;
    if (counts[stage] < 1 || counts[stage] != counts[is_middle ? 1 : rank]) return {};
  }
  return RankLayers{chunks * counts[0], chunks * (size > 2 ? counts[1] : counts[0]),
                    chunks * counts[size - 1]};
}

void expect_predictions_together(const LayerLayout& layout) {
  const auto stages = std::count_if(layout.begin(), layout.end(),
                                    [](const StageLayers& stage) { return stage.predictions > 0; });
  if (stages > 1)
    throw Error(Fault::kProblem,
                fmt::format("the layers m are on {}; Megatron-LM takes them on one",
                            counted(stages, "stage")));
}

/// torchtitan's split (_generate_llm_fqn_per_model_part): the ends count as so many layers more,
/// and the first stages get one more where they do not divide evenly.
std::optional<std::vector<std::int32_t>> split_like_torchtitan(std::int32_t layers,
                                                               std::int32_t stages,
                                                               std::int32_t first_less,
                                                               std::int32_t last_less) {
  if (stages == 1) return std::vector{layers};
  const std::int32_t weight = layers + first_less + last_less;
  const std::int32_t min_weight = weight / stages;
  if (min_weight == 0 || first_less > min_weight || last_less > min_weight) return {};
  std::vector<std::int32_t> counts(static_cast<std::size_t>(stages), min_weight);
  for (std::int32_t stage = 0; stage < weight % stages; ++stage)
    ++counts[static_cast<std::size_t>(stage)];
  counts.front() -= first_less;
  counts.back() -= last_less;
  return counts;
}

/// The value of pipeline_parallel_layers_per_stage for so many stages; empty: none gives them.
std::optional<std::int32_t> find_layers_per_stage(std::int32_t weight, std::int32_t stages) {
  const std::int32_t layers = (weight + stages - 1) / stages;
  if ((weight + layers - 1) / layers != stages) return {};
  return layers;
}

/// A pair of torchtitan's weights, and the stages that it is to give.
struct TorchtitanSplit {
  const std::vector<std::int32_t>& counts;
  std::int32_t layers = 0;
  std::int32_t default_stages = 0;

  /// The keys with these weights; empty where they give other stages.
  std::optional<std::string> keys_with(std::int32_t first_less, std::int32_t last_less) const {
    const auto stages = static_cast<std::int32_t>(counts.size());
    if (split_like_torchtitan(layers, stages, first_less, last_less) != counts) return {};
    std::string keys = fmt::format(
        "pipeline_parallel_first_stage_less_layers = {}\n"
        "pipeline_parallel_last_stage_less_layers = {}\n",
        first_less, last_less);
    if (stages == default_stages) return keys;
    const auto per_stage = find_layers_per_stage(layers + first_less + last_less, stages);
    if (!per_stage) return {};
    return keys + fmt::format("pipeline_parallel_layers_per_stage = {}\n", *per_stage);
  }
};

/// The keys for torchtitan's own split; empty where it makes other stages. Its default weights come
/// first, then the smallest.
std::optional<std::string> find_torchtitan_split(const std::vector<std::int32_t>& counts,
                                                 std::int32_t default_stages) {
  const std::int32_t layers = std::accumulate(counts.begin(), counts.end(), 0);
  const TorchtitanSplit split{counts, layers, default_stages};
  if (auto keys = split.keys_with(1, 1)) return keys;
  const std::int32_t max_less = *std::max_element(counts.begin(), counts.end()) + 1;
  for (std::int32_t both = 0; both <= 2 * max_less; ++both)
    for (std::int32_t first = std::max(0, both - max_less); first <= std::min(both, max_less);
         ++first)
      if (auto keys = split.keys_with(first, both - first)) return keys;
  return {};
}

std::string list_modules(const LayerLayout& layout) {
  std::string text = "module_fqns_per_model_part = [\n";
  std::int32_t layer = 0;
  for (const StageLayers& stage : layout) {
    std::string modules;
    const auto add = [&](const std::string& module) {
      modules += fmt::format("{}\"{}\"", modules.empty() ? "" : ", ", module);
    };
    if (stage.embeddings > 0) add("tok_embeddings");
    for (std::int32_t count = 0; count < stage.transformers; ++count)
      add(fmt::format("layers.{}", layer++));
    if (stage.losses > 0) add("norm");
    if (stage.losses > 0) add("output");
    text += "  [" + modules + "],\n";
  }
  return text + "]\n";
}

}  // namespace

std::string write_megatron_layers(const LayerLayout& layout, std::int32_t ranks) {
  expect_predictions_together(layout);
  const std::optional<RankLayers> layers = find_rank_layers(layout, ranks);
  if (!layers) return fmt::format("--pipeline-model-parallel-layout '{}'", to_string(layout));
  const std::size_t chunks = layout.size() / static_cast<std::size_t>(ranks);
  std::string text;
  if (chunks > 1) text = fmt::format("--num-virtual-stages-per-pipeline-rank {}", chunks);
  if (layers->first == layers->middle && layers->middle == layers->last) return text;
  return text + fmt::format(
                    "{}--decoder-first-pipeline-num-layers {} "
                    "--decoder-last-pipeline-num-layers {}",
                    text.empty() ? "" : " ", layers->first, layers->last);
}

std::string write_torchtitan_layers(const LayerLayout& layout, std::int32_t ranks,
                                    std::int32_t stages_per_rank) {
  for (const StageLayers& stage : layout)
    if (stage.predictions > 0)
      throw Error(Fault::kProblem,
                  "torchtitan 0.2 has no multi-token prediction; leave the layers m out");
  if (has_usual_ends(layout))
    if (const auto keys =
            find_torchtitan_split(count_transformers(layout), ranks * stages_per_rank))
      return *keys;
  return list_modules(layout);
}

}  // namespace bubblescope::traces
