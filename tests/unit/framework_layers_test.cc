// Layers of stages as frameworks' arguments: what is written is read back by the frameworks' own
// rules, implemented here a second time.
#include "traces/plans/framework_layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "traces/costs/megatron_layout.h"

namespace bubblescope::tests {
namespace {

using Counts = std::vector<std::int32_t>;

LayerLayout make_layout(const Counts& counts, std::int32_t predictions = 0) {
  LayerLayout layout;
  for (const std::int32_t count : counts) layout.push_back({.transformers = count});
  layout.front().embeddings = 1;
  layout.back().predictions = predictions;
  layout.back().losses = 1;
  return layout;
}

/// The number after a flag or a key and its "= "; empty where it is not there.
std::optional<std::int32_t> number_of(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(name);
  if (at == text.npos) return {};
  return std::stoi(text.substr(text.find_first_of("0123456789", at + name.size())));
}

/// Several ways to assign so many layers: evenly, with one more at the front or at the back, with
/// less at the ends, and with one stage that has two more.
std::vector<Counts> split_in_ways(std::int32_t layers, std::int32_t stages) {
  const auto size = static_cast<std::size_t>(stages);
  const std::int32_t least = layers / stages;
  std::vector<Counts> ways(4, Counts(size, least));
  for (std::int32_t more = 0; more < layers % stages; ++more) {
    ++ways[0][static_cast<std::size_t>(more)];
    ++ways[1][static_cast<std::size_t>(stages - 1 - more)];
    ++ways[2][static_cast<std::size_t>(stages / 2 + more) % size];
  }
  ways[3].back() += layers % stages;
  if (least > 1 && stages > 2) {
    --ways[2].front();
    --ways[2].back();
    ways[2][size / 2] += 2;
  }
  return ways;
}

/// Calls `check` with layouts of 4 to 64 layers on up to 16 ranks with up to 4 stages each.
template <class Check>
void for_all_layouts(Check check) {
  for (std::int32_t layers = 4; layers <= 64; ++layers)
    for (const std::int32_t ranks : {1, 2, 3, 4, 5, 6, 8, 12, 16})
      for (std::int32_t chunks = 1; chunks <= 4 && ranks * chunks <= layers; ++chunks)
        for (const Counts& counts : split_in_ways(layers, ranks * chunks))
          check(counts, ranks, chunks);
}

/// Megatron-LM's rule (transformer_config.py, get_num_layers_to_build): the ends have their layers,
/// the other ranks share the rest, and every rank's stages are equal.
Counts read_megatron(const std::string& arguments, std::int32_t layers, std::int32_t ranks) {
  const std::int32_t chunks =
      number_of(arguments, "--num-virtual-stages-per-pipeline-rank").value_or(1);
  const auto first = number_of(arguments, "--decoder-first-pipeline-num-layers");
  const auto last = number_of(arguments, "--decoder-last-pipeline-num-layers");
  const std::int32_t middle_ranks = ranks - (first ? 1 : 0) - (last ? 1 : 0);
  const std::int32_t middle = layers - first.value_or(0) - last.value_or(0);
  EXPECT_EQ(middle == 0, middle_ranks == 0);
  Counts counts;
  for (std::int32_t chunk = 0; chunk < chunks; ++chunk)
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      const bool is_end = (rank == 0 && first) || (rank + 1 == ranks && last);
      EXPECT_TRUE(is_end || middle % middle_ranks == 0) << arguments;
      const std::int32_t all = !is_end ? middle / middle_ranks : rank == 0 ? *first : *last;
      EXPECT_EQ(all % chunks, 0) << arguments;
      counts.push_back(all / chunks);
    }
  return counts;
}

TEST(FrameworkLayers, LayoutsReadBack) {
  for_all_layouts([](const Counts& counts, std::int32_t, std::int32_t) {
    for (const std::int32_t predictions : {0, 1, 3}) {
      const LayerLayout layout = make_layout(counts, predictions);
      ASSERT_EQ(traces::parse_layout(traces::to_string(layout)), layout)
          << traces::to_string(layout);
    }
  });
}

TEST(FrameworkLayers, MegatronMakesTheSameStagesOfItsArguments) {
  std::size_t by_rule = 0;
  std::size_t by_layout = 0;
  for_all_layouts([&](const Counts& counts, std::int32_t ranks, std::int32_t chunks) {
    const LayerLayout layout = make_layout(counts, 1);
    const std::string arguments = traces::write_megatron_layers(layout, ranks);
    std::int32_t layers = 0;
    for (const std::int32_t count : counts) layers += count;
    if (const std::size_t quote = arguments.find('\''); quote != arguments.npos) {
      ++by_layout;
      EXPECT_EQ(arguments.find("--pipeline-model-parallel-layout '"), 0u);
      const std::string text = arguments.substr(quote + 1, arguments.size() - quote - 2);
      ASSERT_EQ(traces::parse_layout(text), layout);
      EXPECT_EQ(layout.size(), static_cast<std::size_t>(ranks * chunks));
      return;
    }
    ++by_rule;
    ASSERT_EQ(read_megatron(arguments, layers, ranks), counts) << arguments;
  });
  EXPECT_GT(by_rule, 1000u);
  EXPECT_GT(by_layout, 1000u);
}

TEST(FrameworkLayers, MegatronsArgumentsAreTheShortest) {
  const struct {
    Counts counts;
    std::int32_t ranks;
    const char* arguments;
  } cases[] = {
      {{4, 4, 4, 4}, 4, ""},
      {{4, 4, 4, 4}, 2, "--num-virtual-stages-per-pipeline-rank 2"},
      {{3, 4, 4, 2},
       4,
       "--decoder-first-pipeline-num-layers 3 --decoder-last-pipeline-num-layers 2"},
      {{3, 2}, 2, "--decoder-first-pipeline-num-layers 3 --decoder-last-pipeline-num-layers 2"},
      {{3, 4, 2, 3, 4, 2},
       3,
       "--num-virtual-stages-per-pipeline-rank 2 --decoder-first-pipeline-num-layers 6 "
       "--decoder-last-pipeline-num-layers 4"},
      {{3, 4, 4, 3}, 2, "--pipeline-model-parallel-layout 'Et*3|(t*4|)*2t*3L'"},
      {{5, 4, 3, 4}, 4, "--pipeline-model-parallel-layout 'Et*5|t*4|t*3|t*4L'"},
      {{0, 4, 4, 0}, 4, "--pipeline-model-parallel-layout 'E|(t*4|)*2L'"},
  };
  for (const auto& one : cases)
    EXPECT_EQ(traces::write_megatron_layers(make_layout(one.counts), one.ranks), one.arguments);
  EXPECT_EQ(traces::write_megatron_layers(traces::parse_layout("Et*4|t*4|m|L"), 4),
            "--pipeline-model-parallel-layout 'Et*4|t*4|m|L'");
  EXPECT_EQ(
      error_of([&] { traces::write_megatron_layers(traces::parse_layout("Ett|tt|m|mL"), 4); }),
      "the layers m are on 2 stages; Megatron-LM takes them on one");
}

/// torchtitan's own split (pipeline_parallel.py, _generate_llm_fqn_per_model_part): hands out the
/// layers one after the other.
Counts split_by_torchtitan(std::int32_t layers, std::int32_t stages, std::int32_t first_less,
                           std::int32_t last_less) {
  if (stages == 1) return {layers};
  const std::int32_t weight = layers + first_less + last_less;
  EXPECT_GT(weight / stages, 0);
  EXPECT_LE(std::max(first_less, last_less), weight / stages);
  Counts counts;
  std::int32_t next = 0;
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    std::int32_t here = weight / stages + (stage < weight % stages ? 1 : 0);
    if (stage == 0) here -= first_less;
    if (stage + 1 == stages) here -= last_less;
    here = std::min(here, layers - next);
    next += here;
    counts.push_back(here);
  }
  EXPECT_EQ(next, layers);
  return counts;
}

/// The stages of a list of modules, whose layers must be numbered in order.
LayerLayout read_modules(const std::string& text) {
  LayerLayout layout;
  std::int32_t next = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("  [") != 0) continue;
    StageLayers& stage = layout.emplace_back();
    for (std::size_t at = line.find("layers."); at != line.npos;
         at = line.find("layers.", at + 1)) {
      EXPECT_EQ(std::stoi(line.substr(at + 7)), next++);
      ++stage.transformers;
    }
    stage.embeddings = line.find("\"tok_embeddings\"") != line.npos ? 1 : 0;
    stage.losses = line.find("\"norm\", \"output\"") != line.npos ? 1 : 0;
  }
  return layout;
}

TEST(FrameworkLayers, TorchtitanMakesTheSameStagesOfItsKeys) {
  std::size_t by_rule = 0;
  std::size_t by_list = 0;
  for_all_layouts([&](const Counts& counts, std::int32_t ranks, std::int32_t chunks) {
    const LayerLayout layout = make_layout(counts);
    const std::int32_t usual = chunks == 1 ? 1 : 2;
    const std::string keys = traces::write_torchtitan_layers(layout, ranks, usual);
    std::int32_t layers = 0;
    for (const std::int32_t count : counts) layers += count;
    const auto first = number_of(keys, "pipeline_parallel_first_stage_less_layers");
    if (!first) {
      ++by_list;
      ASSERT_EQ(read_modules(keys), layout);
      return;
    }
    ++by_rule;
    const std::int32_t last = *number_of(keys, "pipeline_parallel_last_stage_less_layers");
    const auto per_stage = number_of(keys, "pipeline_parallel_layers_per_stage");
    const std::int32_t stages =
        per_stage ? (layers + *first + last + *per_stage - 1) / *per_stage : ranks * usual;
    ASSERT_EQ(stages, ranks * chunks) << keys;
    ASSERT_EQ(split_by_torchtitan(layers, stages, *first, last), counts) << keys;
  });
  EXPECT_GT(by_rule, 1000u);
  EXPECT_GT(by_list, 1000u);
}

TEST(FrameworkLayers, TorchtitanListsModulesWhereItsRuleMakesOtherStages) {
  EXPECT_EQ(traces::write_torchtitan_layers(traces::parse_layout("Et|t|tt|tL"), 4, 1),
            "module_fqns_per_model_part = [\n"
            "  [\"tok_embeddings\", \"layers.0\"],\n"
            "  [\"layers.1\"],\n"
            "  [\"layers.2\", \"layers.3\"],\n"
            "  [\"layers.4\", \"norm\", \"output\"],\n"
            "]\n");
  EXPECT_EQ(traces::write_torchtitan_layers(traces::parse_layout("Et*7|t*8|t*8|t*7L"), 4, 1),
            "pipeline_parallel_first_stage_less_layers = 1\n"
            "pipeline_parallel_last_stage_less_layers = 1\n");
  EXPECT_EQ(
      error_of([&] { traces::write_torchtitan_layers(traces::parse_layout("Et|tmL"), 2, 1); }),
      "torchtitan 0.2 has no multi-token prediction; leave the layers m out");
}

}  // namespace
}  // namespace bubblescope::tests
