// Compares partitions of published profiles with the values of PipeDream's own optimizer.
#include <gtest/gtest.h>

#include <algorithm>

#include "schedules/partition/replicated.h"
#include "tests/golden/reference_data.h"
#include "traces/costs/model_profile.h"

namespace bubblescope::tests {
namespace {

struct Published {
  const char* profile;
  std::vector<schedules::WorkerLevel> levels;
  bool straight;
  double seconds;
};

constexpr Bytes kTenGigabit = 1'250'000'000;

// The values come from optimizer_graph_hierarchical.py and the profiles that come with it. Where
// several partitions are equally good it may choose another.
const Published kPublished[] = {
    {"vgg16", {{4, kTenGigabit}}, false, 0.1744985},
    {"alexnet", {{4, kTenGigabit}}, false, 0.0229012},
    {"vgg16", {{4, kTenGigabit}}, true, 0.21645},
    {"vgg16", {{16, kTenGigabit}}, false, 0.0465875},
    {"vgg16", {{4, 10'000'000'000}, {4, kTenGigabit}}, false, 0.0441211},
    {"resnet50", {{4, kTenGigabit}}, true, 0.111497},
    {"gnmt", {{4, kTenGigabit}}, true, 0.025868},
};

std::string path_of(const Published& published) {
  return std::string("profiles/pipedream/") + published.profile + "__graph.txt";
}

class PublishedProfiles : public testing::TestWithParam<Published> {};

TEST_P(PublishedProfiles, AreCutAsWellAsByPipedream) {
  const Published& published = GetParam();
  const std::string missing = missing_reference(path_of(published));
  if (!missing.empty()) GTEST_SKIP() << missing;
  const LayerGraph graph =
      traces::read_model_profile(reference_folder() + "/" + path_of(published));
  const auto partition = schedules::plan_replicated(
      graph, {.levels = published.levels, .straight = published.straight});
  ASSERT_TRUE(partition);
  EXPECT_NEAR(static_cast<double>(partition->period) / 1e9, published.seconds,
              2e-5 * published.seconds);
  Nanos slowest = 0;
  for (const schedules::PartitionStage& stage : partition->stages)
    slowest = std::max(slowest, stage.time);
  EXPECT_EQ(slowest, partition->period);
}

INSTANTIATE_TEST_SUITE_P(Partition, PublishedProfiles, testing::ValuesIn(kPublished),
                         [](const auto& test) {
                           return test.param.profile + std::to_string(test.index);
                         });

// Totals of forward and backward in ms, and parameters in MB, as published with the profiles; the
// nodes that load data are not included.
TEST(Partition, ReadsDapplesGraphs) {
  const std::string file = "profiles/dapple/bert-48-pbs-2.txt";
  const std::string missing = missing_reference(file);
  if (!missing.empty()) GTEST_SKIP() << missing;
  const LayerGraph graph = traces::read_model_profile(reference_folder() + "/" + file);
  const schedules::PartitionStage all = schedules::stage_of(graph, [&] {
    std::vector<std::int32_t> layers(graph.layers.size());
    for (std::size_t at = 0; at < layers.size(); ++at) layers[at] = static_cast<std::int32_t>(at);
    return layers;
  }());
  EXPECT_NEAR(static_cast<double>(all.forward) / 1e6, 129, 0.5);
  EXPECT_NEAR(static_cast<double>(all.backward) / 1e6, 215, 0.5);
  EXPECT_NEAR(static_cast<double>(all.parameters) / 1e6, 2550, 0.5);
}

}  // namespace
}  // namespace bubblescope::tests
