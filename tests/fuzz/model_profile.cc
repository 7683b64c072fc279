// Fuzzes the reader of model profiles and what cuts them: every graph that is read can be cut into
// stages that hold each layer once.
#include "traces/costs/model_profile.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "schedules/partition/bottleneck.h"
#include "sim/ir/error.h"

namespace {

using namespace bubblescope;

void expect_whole(const LayerGraph& graph) {
  constexpr std::int32_t kMaxLayers = 40;  // a fuzzer's patience
  if (graph.size() == 0 || graph.size() > kMaxLayers) return;
  const std::int32_t stages = 1 + graph.size() / 2;
  const auto partition = schedules::min_bottleneck(graph, stages);
  if (!partition) std::abort();
  std::size_t layers = 0;
  for (const schedules::PartitionStage& stage : partition->stages) layers += stage.layers.size();
  if (layers != graph.layers.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    expect_whole(
        traces::parse_model_profile({reinterpret_cast<const char*>(data), size}, "fuzz.txt"));
  } catch (const Error&) {  // refused
  }
  return 0;
}
