// Full recomputation of some layers of a stage, or of several at a time, as Megatron-LM has it.
#include "sim/model/recomputed_layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/registry.h"
#include "sim/model/activation_bytes.h"
#include "sim/model/layer_recompute.h"
#include "sim/model/model_step.h"
#include "sim/model/schedule_def.h"
#include "sim/model/stage_loads.h"
#include "sim/predict/predict.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

constexpr RecomputeMethod kBlock = RecomputeMethod::kBlock;
constexpr RecomputeMethod kUniform = RecomputeMethod::kUniform;

ModelOnDevices on_devices(const char* model) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find(model)->model;
  on.gpu = Registry<GpuDef>::instance().find("h100")->gpu;
  on.parallel.sequence = 4096;
  on.parallel.recompute = Recompute::kFull;
  return on;
}

ModelOnDevices covering(ModelOnDevices on, RecomputeMethod method, std::int64_t number) {
  on.parallel.recomputed = {method, number};
  return on;
}

/// The load of 8 layers between the ends of a pipeline.
StageLoad load_of(const ModelOnDevices& on) { return StageLoads(on, 4).load(1, 8, 16); }

void expect_equal(const StageLoad& left, const StageLoad& right) {
  EXPECT_EQ(left.times.forward, right.times.forward);
  EXPECT_EQ(left.times.input_grad, right.times.input_grad);
  EXPECT_EQ(left.times.weight_grad, right.times.weight_grad);
  EXPECT_EQ(left.memory, right.memory);
  EXPECT_EQ(left.exchange, right.exchange);
  EXPECT_EQ(left.held_again, right.held_again);
}

/// The bytes that a layer saves without recomputation, and of its input.
Bytes whole_of(const ModelOnDevices& on, std::int64_t layer = 1) {
  return estimate_layer_memory(on.model, without_recomputation(on).parallel, layer).forward;
}
Bytes input_of(const ModelOnDevices& on) {
  return estimate_layer_memory(on.model, on.parallel, 1).forward;
}

TEST(RecomputedLayers, AreCountedAsMegatronDoes) {
  const RecomputedLayers groups{kUniform, 3};  // [0 1 2] [3 4 5] [6 7]
  EXPECT_EQ(groups.covered(8), 8);
  EXPECT_EQ(groups.saved_inputs(8), 3);
  EXPECT_EQ(groups.held_again(8), 3);
  EXPECT_EQ(groups.saved_inputs(2), 1);
  EXPECT_EQ(groups.held_again(2), 2);
  EXPECT_EQ(groups.saved_inputs(0), 0);
  EXPECT_EQ(groups.held_again(0), 0);
  const RecomputedLayers block{kBlock, 3};  // [0] [1] [2] 3 4 5 6 7
  EXPECT_EQ(block.covered(8), 3);
  EXPECT_EQ(block.saved_inputs(8), 3);
  EXPECT_EQ(block.held_again(8), 0);  // layer 7 has released as much
  EXPECT_EQ(block.covered(2), 2);
  EXPECT_EQ(block.held_again(3), 1);
  EXPECT_EQ(block.held_again(0), 0);
  EXPECT_EQ(to_text(block), "block 3");
  EXPECT_EQ(to_text(RecomputedLayers{}), "");
}

TEST(RecomputedLayers, AreNoneOrAllAtTheEnds) {
  for (const char* model : {"llama3-8b", "mixtral-8x7b"}) {
    const ModelOnDevices full = on_devices(model);
    expect_equal(load_of(covering(full, kBlock, 0)), load_of(without_recomputation(full)));
    for (const std::int64_t number : {8, 9, 1000})
      expect_equal(load_of(covering(full, kBlock, number)), load_of(full));
    expect_equal(load_of(covering(full, kUniform, 1)), load_of(full));
  }
}

// Every further layer of a block takes its forward once more, and saves its input alone.
TEST(RecomputedLayers, OfABlockAddTheSameEach) {
  for (const char* model : {"llama3-8b", "mixtral-8x7b"}) {
    const ModelOnDevices full = on_devices(model);
    const StageLoad none = load_of(without_recomputation(full));
    const StageLoad all = load_of(full);
    for (std::int64_t number = 0; number <= 8; ++number) {
      const auto share = static_cast<double>(number) / 8;
      const StageLoad some = load_of(covering(full, kBlock, number));
      EXPECT_DOUBLE_EQ(some.times.forward, none.times.forward);
      EXPECT_DOUBLE_EQ(some.times.weight_grad, none.times.weight_grad);
      EXPECT_NEAR(some.times.input_grad,
                  (1 - share) * none.times.input_grad + share * all.times.input_grad, 1)
          << model << " " << number;
      EXPECT_EQ(some.memory.forward, number * input_of(full) + (8 - number) * whole_of(full));
      EXPECT_EQ(some.memory.forward + some.memory.input_grad + some.memory.weight_grad, 0);
      EXPECT_DOUBLE_EQ(some.exchange, (1 - share) * none.exchange + share * all.exchange);
    }
  }
}

// A host that takes 1.1 ms to launch each of 8 layers, and as much to launch a recomputed one, is
// slower than a device with a small sequence.
TEST(RecomputedLayers, OfABlockAreLaunchedAgain) {
  ModelOnDevices full = on_devices("llama3.2-1b");
  full.parallel.sequence = 128;
  full.assumptions.host_layer = 1'100'000;
  full.assumptions.host_pass = 0;
  const auto backward = [](const ModelOnDevices& on) {
    const StageLoad load = load_of(on);
    return load.times.input_grad + load.times.weight_grad;
  };
  EXPECT_DOUBLE_EQ(backward(without_recomputation(full)), 8 * 1.1e6);
  EXPECT_DOUBLE_EQ(backward(covering(full, kBlock, 2)), 10 * 1.1e6);
  EXPECT_DOUBLE_EQ(backward(full), 16 * 1.1e6);
}

TEST(RecomputedLayers, InGroupsTakeTheSameTimeAndSaveFewerInputs) {
  const ModelOnDevices full = on_devices("llama3-8b");
  const StageLoad all = load_of(full);
  for (const std::int64_t number : {2, 3, 8, 100}) {
    const StageLoad groups = load_of(covering(full, kUniform, number));
    EXPECT_EQ(groups.times.input_grad, all.times.input_grad) << number;
    const std::int64_t inputs = number == 2 ? 4 : number == 3 ? 3 : 1;
    EXPECT_EQ(groups.memory.forward, inputs * input_of(full)) << number;
    EXPECT_EQ(groups.memory.weight_grad, all.memory.weight_grad);
    EXPECT_EQ(groups.memory.forward + groups.memory.input_grad + groups.memory.weight_grad, 0);
    EXPECT_EQ(groups.held_again, std::min<std::int64_t>(number, 8));
  }
}

// A rank's backwards run one after the other, so its largest group counts once.
TEST(RecomputedLayers, OfTheLargestGroupAreBuffers) {
  const ModelOnDevices full = on_devices("llama3-8b");
  Shape shape;
  shape.ranks = 4;
  const auto buffers = [&](const ModelOnDevices& on) {
    const StageLoads loads(on, 4);
    RankLoad rank;
    rank.add(loads.load(1, 8, 13));
    rank.add(loads.load(2, 13, 15));
    return RankBuffers(on, shape).count(rank);
  };
  const Bytes without = buffers(without_recomputation(full));
  EXPECT_EQ(buffers(full) - without, whole_of(full));
  EXPECT_EQ(buffers(covering(full, kUniform, 3)) - without, 3 * whole_of(full));
  EXPECT_EQ(buffers(covering(full, kUniform, 64)) - without, 5 * whole_of(full));
  EXPECT_EQ(buffers(covering(full, kBlock, 1)) - without, 0);
  EXPECT_EQ(buffers(covering(full, kBlock, 2)) - without, whole_of(full));  // of the second stage
}

// 32 layers on 4 ranks with 2 chunks each: 4 layers in every chunk, of which 3 are recomputed.
TEST(RecomputedLayers, AreCountedInEveryChunk) {
  const ModelOnDevices on = covering(on_devices("llama3-8b"), kBlock, 3);
  ScheduleRequest request;
  request.shape.ranks = 4;
  request.shape.microbatches = 8;
  request.shape.chunks = 2;
  const Schedule schedule = build_schedule(find_schedule("interleaved"), request);
  ModelOnDevices even = on;
  even.parallel.layers_of_stage.assign(8, 4);
  const ModelStep step = compute_model_step(even, schedule);
  for (std::size_t stage = 1; stage < 7; ++stage)
    EXPECT_EQ(step.activation_bytes[stage].forward, 3 * input_of(on) + whole_of(on)) << stage;
}

// Stages of 5, 9, 10 and 8 layers; 6 of each are recomputed, or all where there are fewer.
TEST(RecomputedLayers, AreThoseOfEveryStageHoweverManyItHas) {
  ModelOnDevices full = on_devices("llama3-8b");
  full.parallel.layers_of_stage = {5, 9, 10, 8};
  Shape shape;
  shape.ranks = 4;
  const ModelStep all = compute_model_step(full, shape);
  const ModelStep some = compute_model_step(covering(full, kBlock, 6), shape);
  const double forward = estimate_layer_times(full, 1).forward;
  for (const auto& [stage, kept] : {std::pair{0, 0}, {1, 3}, {2, 4}, {3, 2}}) {
    const auto at = static_cast<std::size_t>(stage);
    EXPECT_EQ(some.activation_bytes[at].forward - all.activation_bytes[at].forward,
              kept * (whole_of(full) - input_of(full)));
    EXPECT_NEAR(static_cast<double>(all.costs.stages[at].backward - some.costs.stages[at].backward),
                kept * forward, 2);
  }
}

// DeepSeek-V3 has three dense layers; the first two of four are recomputed, and the fourth has
// experts.
TEST(RecomputedLayers, AreTheFirstOnesOfAStage) {
  const ModelOnDevices on = covering(on_devices("deepseek-v3"), kBlock, 2);
  const StageLoad load = StageLoads(on, 16).load(1, 0, 4);
  EXPECT_EQ(load.memory.forward, 2 * input_of(on) + whole_of(on, 2) + whole_of(on, 3));
}

// Megatron-LM skips these modules in blocks, and has no groups of several (MultiTokenPrediction).
TEST(RecomputedLayers, LeavePredictionsOutOfBlocks) {
  const ModelOnDevices full = on_devices("deepseek-v3");
  const auto tail = [](const ModelOnDevices& on) { return StageLoads(on, 4).load(3, 61, 61); };
  expect_equal(tail(covering(full, kBlock, 100)), tail(without_recomputation(full)));
  EXPECT_GT(tail(full).times.input_grad, tail(without_recomputation(full)).times.input_grad);
  EXPECT_EQ(error_of([&] { tail(covering(full, kUniform, 2)); }),
            "the model's multi-token predictions are recomputed one layer at a time; give "
            "`recompute_num_layers` 1, or `recompute_method` block, which keeps them");
  EXPECT_EQ(error_of([&] { load_of(covering(on_devices("llama3-8b"), kUniform, 0)); }),
            "`recompute_num_layers` 0 makes groups of no layers; give 1 or more");
}

// A pair hides the exchanges of its forward and its backward, and that of the layers that are
// recomputed.
TEST(RecomputedLayers, HideTheirExchangeInPairs) {
  ModelOnDevices on = on_devices("mixtral-8x7b");
  on.parallel.data = on.parallel.expert = 8;
  on.assumptions.pairs_hide_exchange = true;
  Shape shape;
  shape.ranks = 4;
  const auto pair = [&](const ModelOnDevices& which) {
    return *compute_model_step(which, shape).costs.stages[1].overlapped_pair;
  };
  EXPECT_EQ(pair(covering(on, kBlock, 0)), pair(without_recomputation(on)));
  EXPECT_EQ(pair(covering(on, kBlock, 32)), pair(on));
  const Nanos half = pair(covering(on, kBlock, 4));
  EXPECT_NEAR(static_cast<double>(half),
              static_cast<double>(pair(on) + pair(without_recomputation(on))) / 2, 2);
}

bool has_line(const ModelOnDevices& on, const std::string& part) {
  const std::vector<std::string> lines = explain(on);
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

TEST(RecomputedLayers, AreExplained) {
  ModelOnDevices on = covering(on_devices("llama3-8b"), kBlock, 6);
  on.parallel.layers_of_stage = {5, 9, 10, 8};
  EXPECT_TRUE(has_line(on, "recompute full block 6,"));
  EXPECT_TRUE(has_line(on, "the first layers of every stage or chunk, up to 6,"));
  EXPECT_TRUE(has_line(on, "23 of 32 layers"));  // 5 + 6 + 6 + 6
  EXPECT_TRUE(has_line(covering(on, kUniform, 2), "in groups of 2"));
  EXPECT_FALSE(has_line(covering(on, kUniform, 1), "recomputation: "));
}

Nanos step_of(const char* name, const ModelOnDevices& on) {
  const ScheduleDef& def = find_schedule(name);
  ScheduleRequest request;
  request.shape.ranks = 4;
  request.shape.microbatches = 8;
  request.shape.chunks = def.implied_chunks.value_or(1);
  Config config;
  config.costs = ModelCosts{on};
  return predict(build_schedule(def, request), config).report.makespan;
}

// A rank would spare a layer's recomputation if one of its two stages had none, and all wait for
// the other. Full recomputation is the longest.
TEST(RecomputedLayers, LeaveNoStageOfABalancedSplitEmpty) {
  for (const char* name : {"1f1b", "zb-v", "v-half", "dualpipe", "chimera"})
    for (const char* model : {"mixtral-8x7b", "llama3-70b"}) {
      ModelOnDevices on = on_devices(model);
      on.parallel.tensor = 8;
      const Nanos all = step_of(name, on);
      const Nanos none = step_of(name, without_recomputation(on));
      for (const std::int64_t number : {1, 2}) {
        SCOPED_TRACE(std::string(name) + " " + model + " " + std::to_string(number));
        const Nanos some = step_of(name, covering(on, kBlock, number));
        EXPECT_GT(some, none);
        EXPECT_LE(some, all);
      }
    }
}

}  // namespace
}  // namespace bubblescope::tests
