// The step of overlapped pairs without their overlap.
#include "sim/predict/serial_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <variant>

#include "sim/model/gpu.h"
#include "sim/model/model_parts.h"
#include "sim/model/runtime.h"
#include "sim/model/schedule_def.h"
#include "sim/model/transformer.h"
#include "sim/predict/predict.h"

namespace bubblescope::tests {
namespace {

/// Mixtral 8x7B with tensor 2, data 8 and expert 8 on H100s, which reduces its gradients after the
/// step: those of 2 bytes take half as long.
Config mixtral_with_pairs() {
  ModelCosts source;
  ModelOnDevices& on = source.on;
  on.model = Registry<ModelDef>::instance().find("mixtral-8x7b")->model;
  on.gpu = Registry<GpuDef>::instance().find("h100")->gpu;
  on.assumptions = Registry<RuntimeDef>::instance().find("megatron")->assumptions;
  on.parallel.sequence = on.model.sequence;
  on.parallel.tensor = 2;
  on.parallel.data = 8;
  on.parallel.expert = 8;
  on.parts = parse_model_parts("dualpipe");
  source.end.reduction = GradReduction::kSerial;
  Config config;
  config.costs = source;
  return config;
}

ValidSchedule build_pairs() {
  ScheduleRequest request;
  request.shape.ranks = 4;
  request.shape.chunks = 2;
  request.shape.microbatches = 8;
  return build_schedule(find_schedule("dualpipev"), request);
}

Prediction predict_serial(Config config) {
  config.lower.overlap = Overlap::kSerial;
  return predict(build_pairs(), config);
}

TEST(SerialStep, HasItsOwnLayers) {
  const Config config = mixtral_with_pairs();
  EXPECT_EQ(find_serial_step(build_pairs(), config), predict_serial(config).report.makespan);
}

// The device is made just too small for gradients of 4 bytes.
TEST(SerialStep, HasTheGradientsThatFit) {
  Config config = mixtral_with_pairs();
  auto& source = std::get<ModelCosts>(config.costs);
  source.tries_splits = false;  // one that needs less memory would do with larger gradients
  source.on.gpu.memory = 1'000'000'000'000;
  const Prediction roomy = predict_serial(config);
  Bytes fullest = 0;
  for (const RankReport& rank : roomy.report.ranks)
    fullest = std::max(fullest, rank.peak.bytes.value_or(0));
  source.on.gpu.memory = fullest - 1;
  const Prediction tight = predict_serial(config);
  ASSERT_LT(tight.report.makespan, roomy.report.makespan);
  EXPECT_EQ(find_serial_step(build_pairs(), config), tight.report.makespan);
}

TEST(SerialStep, IsNoneWherePairsAreSerialAlready) {
  Config config = mixtral_with_pairs();
  config.lower.overlap = Overlap::kSerial;
  EXPECT_EQ(find_serial_step(build_pairs(), config), std::nullopt);
}

}  // namespace
}  // namespace bubblescope::tests
