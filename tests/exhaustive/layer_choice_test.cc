// The default split of a model's layers against those of both rules, over many shapes: its step is
// never longer, and it fits wherever the balanced split fits.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/timeline.h"
#include "sim/model/place_stages.h"
#include "sim/model/schedule_def.h"
#include "sim/model/schedule_refusal.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/model_fit.h"
#include "sim/predict/predict.h"

namespace bubblescope::tests {
namespace {

struct ChosenCase {
  std::string schedule;
  std::int32_t ranks = 0;
  std::int32_t chunks = 1;
  std::int32_t microbatches = 0;
};

/// A schedule, its Program and a model on roomy devices.
struct ChosenStep {
  ValidSchedule schedule;
  Config config;
  Program program;

  ModelOnDevices& on() { return std::get<ModelCosts>(config.costs).on; }
};

ScheduleRequest make_request(const ChosenCase& shape) {
  ScheduleRequest request;
  request.shape.ranks = shape.ranks;
  request.shape.chunks = shape.chunks;
  request.shape.microbatches = shape.microbatches;
  return request;
}

ChosenStep make_step(const ChosenCase& shape, const std::string& model) {
  ChosenStep step{build_schedule(find_schedule(shape.schedule), make_request(shape)), {}, {}};
  ModelCosts& costs = step.config.costs.emplace<ModelCosts>();
  costs.on.model = Registry<ModelDef>::instance().find(model)->model;
  costs.on.gpu = Registry<GpuDef>::instance().find("h100")->gpu;
  costs.on.gpu.memory = Bytes{1} << 50;
  costs.on.parallel.sequence = costs.on.model.sequence;
  costs.may_shrink_gradients = false;
  step.program = lower_or_refuse(step.schedule, choose_lowering(step.schedule, step.config));
  return step;
}

/// The step with these layers; with the default ones where none are given.
PredictedStep time_step(ChosenStep step, const LayerCounts& counts) {
  step.on().parallel.layers_of_stage = counts;
  step.config.detail = Detail::kBrief;
  return predict_step(step.schedule, step.program, step.config);
}

Nanos end_of(const PredictedStep& step) { return find_step_bounds(step.timeline).end; }

std::vector<ChosenCase> list_cases() {
  std::vector<ChosenCase> cases;
  for (const std::int32_t ranks : {2, 4, 8})
    for (const std::int32_t factor : {1, 2, 4}) {
      for (const char* name : {"1f1b", "gpipe", "zb-h1", "chimera", "dualpipe"})
        cases.push_back({name, ranks, 1, factor * ranks});
      for (const char* name :
           {"interleaved", "interleaved-zb", "bfs", "zb-v", "v-half", "dualpipev", "hanayo"})
        cases.push_back({name, ranks, 2, factor * ranks});
    }
  return cases;
}

TEST(LayerChoice, IsNeverLongerThanTheSplitOfEitherRule) {
  int shapes = 0;
  int shorter = 0;
  double gained = 0;
  for (const char* model : {"llama3-8b", "llama2-13b", "deepseek-v2-lite"})
    for (const ChosenCase& shape : list_cases()) {
      if (!refuse_schedule(find_schedule(shape.schedule), make_request(shape)).empty()) continue;
      ChosenStep step = make_step(shape, model);
      const PlacedLoads loads(step.on(), step.schedule);
      const Nanos chosen = end_of(time_step(step, {}));
      const Nanos balanced = end_of(time_step(step, *loads.balance()));
      EXPECT_LE(chosen, balanced) << model << " " << shape.schedule << " " << shape.ranks;
      const std::optional<LayerCounts> other = loads.balance_otherwise();
      const Nanos otherwise = other ? end_of(time_step(step, *other)) : balanced;
      EXPECT_LE(chosen, otherwise) << model << " " << shape.schedule << " " << shape.ranks;
      ++shapes;
      shorter += chosen < balanced ? 1 : 0;
      gained += 1 - static_cast<double>(chosen) / static_cast<double>(balanced);
    }
  EXPECT_GE(shapes, 200);
  EXPECT_GE(shorter, shapes / 3);
  EXPECT_GE(gained / shapes, 0.008);
}

// With every amount of memory between the least that any split takes and what the roomy one takes.
TEST(LayerChoice, FitsWhereverTheBalancedSplitFits) {
  for (const char* schedule : {"1f1b", "zb-h1", "gpipe"}) {
    ChosenStep step = make_step({schedule, 8, 1, 16}, "llama3-8b");
    const LayerCounts balanced = *PlacedLoads(step.on(), step.schedule).balance();
    const auto peak_of = [&](const LayerCounts& counts) {
      const PredictedStep timed = time_step(step, counts);
      return find_fit(*timed.models.placed, timed.report).peak;
    };
    const Bytes needed = peak_of(balanced);
    const Bytes roomy = peak_of({});
    for (Bytes memory = needed; memory <= std::max(needed, roomy); memory += Bytes{1} << 28) {
      step.on().gpu.memory = memory;
      EXPECT_LE(peak_of({}), memory) << schedule;
      EXPECT_LE(end_of(time_step(step, {})), end_of(time_step(step, balanced))) << schedule;
    }
    step.on().gpu.memory = needed - 1;
    EXPECT_EQ(peak_of({}), needed) << schedule << ": no split is sought for a model without room";
  }
}

}  // namespace
}  // namespace bubblescope::tests
