// How far the balanced split of a model's layers is from the best of all splits, by simulating
// every one of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/ir/timeline.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/predict.h"
#include "tests/support/all_layer_counts.h"
#include "tools/flags/options.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/resolve_model.h"
#include "tools/inputs/schedule_request.h"

namespace bubblescope::tests {
namespace {

struct Shaped {
  const char* schedule;
  std::int32_t ranks;
  std::int32_t chunks;
  double max_loss;       ///< of the balanced split over the best, at most
  double max_mean_loss;  ///< the same in the mean over models
};

tools::PredictOptions options_of(const Shaped& shaped, const std::string& model) {
  tools::PredictOptions options;
  options.shape.ranks = shaped.ranks;
  options.shape.microbatches = 4 * shaped.ranks;
  if (!find_schedule(shaped.schedule).implied_chunks) options.shape.chunks = shaped.chunks;
  options.model.model = model;
  options.model.gpu = "h100";
  if (model == "deepseek-v3") {  // as it is trained: with few experts per rank
    options.model.parallel.expert = 64;
    options.model.parallel.data = 64;
  }
  return options;
}

/// The step with a split; with the balanced one where none is given.
Nanos time_step(const Shaped& shaped, const tools::PredictOptions& options,
                const ModelOnDevices& on, const LayerCounts& counts) {
  const tools::PredictInputs inputs(options, {.model = on});
  Config config = inputs.config();
  auto& model = std::get<ModelCosts>(config.costs);
  model.on.parallel.layers_of_stage = counts;
  model.may_shrink_gradients = false;
  config.detail = Detail::kTimes;
  const ScheduleDef& def = find_schedule(shaped.schedule);
  const ValidSchedule schedule = build_schedule(def, tools::make_request(def, inputs));
  const Program program = lower_or_refuse(schedule, choose_lowering(schedule, config));
  return find_step_bounds(predict_step(schedule, program, config).timeline).end;
}

TEST(LayerBalance, IsNearTheBestSplit) {
  const Shaped all[] = {
      {"1f1b", 4, 1, 0.035, 0.01},        {"zb-h1", 4, 1, 0.01, 0.005},
      {"interleaved", 2, 2, 0.05, 0.011}, {"interleaved", 3, 2, 0.135, 0.055},
      {"interleaved", 2, 3, 0.09, 0.055}, {"interleaved-zb", 3, 2, 0.21, 0.065},
      {"zb-v", 2, 2, 0.02, 0.005},        {"zb-v", 3, 2, 0.06, 0.015},
      {"dualpipev", 3, 2, 0.01, 0.005},   {"hanayo", 2, 2, 0.105, 0.04},
      {"chimera", 4, 1, 0.1, 0.04},       {"dualpipe", 4, 1, 0.015, 0.005},
  };
  for (const Shaped& shaped : all) {
    double sum = 0;
    double largest = 0;
    int models = 0;
    for (const char* model : {"llama3-8b", "llama3.2-3b", "deepseek-v3"})
      for (const std::int64_t layers : {7, 9}) {
        const tools::PredictOptions options = options_of(shaped, model);
        ModelOnDevices on = tools::resolve_model(options.model);
        on.model.layers = layers;
        const Nanos balanced = time_step(shaped, options, on, {});
        Nanos best = balanced;
        for (const LayerCounts& counts :
             list_layer_counts(layers, static_cast<std::size_t>(shaped.ranks) * shaped.chunks))
          best = std::min(best, time_step(shaped, options, on, counts));
        const double loss = static_cast<double>(balanced) / static_cast<double>(best) - 1;
        sum += loss;
        largest = std::max(largest, loss);
        ++models;
      }
    EXPECT_LE(largest, shaped.max_loss) << shaped.schedule;
    EXPECT_LE(sum / models, shaped.max_mean_loss) << shaped.schedule;
  }
}

}  // namespace
}  // namespace bubblescope::tests
