// A model's step beyond its layers: its end, the memory of ranks, and errors.
#include "sim/model/model_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/engine/simulate.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/model/schedule_def.h"
#include "sim/model/stage_loads.h"
#include "sim/predict/models.h"
#include "tests/support/as_written.h"

namespace bubblescope::tests {
namespace {

ModelOnDevices on_devices(const char* model, const char* gpu) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find(model)->model;
  on.gpu = Registry<GpuDef>::instance().find(gpu)->gpu;
  on.parallel.sequence = on.model.sequence;
  return on;
}

Shape shape_of(std::int32_t ranks, std::int32_t microbatches = 4) {
  Shape shape;
  shape.ranks = ranks;
  shape.microbatches = microbatches;
  return shape;
}

std::string complaint(const ModelOnDevices& on, std::int32_t stages) {
  try {
    compute_model_step(on, shape_of(stages));
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

// 1F1B of 8 layers' time, without and with its end: reductions, norm and update are added.
TEST(StepEnd, TakesTimeIfTheProgramHasIt) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  on.parallel.data = 16;
  ScheduleRequest request;
  request.shape = shape_of(4);
  const Schedule schedule = build_schedule(find_schedule("1f1b"), request);
  const ModelStep step = compute_model_step(on, schedule);
  LowerOptions options;
  const auto makespan = [&] {
    const Program program = std::get<Program>(lower(schedule, options));
    Nanos last = 0;
    for (const Nanos end : simulate(program, step.costs).end) last = std::max(last, end);
    return last;
  };
  const Nanos without = makespan();
  options.update = {OptimizerMode::kBarrier, GradReduction::kOverlap};
  // Stage 0's backward is the last op of 1F1B, and every stage waits for the norm; the longest
  // update follows.
  Nanos update = 0;
  for (const UpdateCost& cost : step.costs.updates) update = std::max(update, cost.optimizer);
  EXPECT_EQ(makespan(), without + step.costs.updates[0].reduce_grad + step.costs.norm + update);
  EXPECT_GT(step.costs.updates[0].reduce_grad, 0);
}

TEST(StepEnd, IsFreeOfReductionsWithoutCopies) {
  const ModelStep step = compute_model_step(on_devices("llama3-8b", "h100"), shape_of(4));
  ASSERT_EQ(step.costs.updates.size(), 4u);
  for (const UpdateCost& cost : step.costs.updates) {
    EXPECT_EQ(cost.reduce_grad, 0);
    EXPECT_EQ(cost.unshard, 0);
    EXPECT_GT(cost.optimizer, 0);
  }
}

// 16 data ranks, each on a node of its own, as 8 tensor ranks fill it: 4 bytes of the gradients and
// 2 of the weights of 8 layers pass InfiniBand; a sixteenth of each is waited for at least, and 20
// of 132 SMs (2412.19437) are taken from the compute beside the rest.
TEST(StepEnd, CountsTheExposedPart) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  on.parallel.tensor = 8;
  on.parallel.data = 16;
  on.parallel.zero_stage = 0;
  const StageParameters parameters{1e9, 0};
  PhaseTimes endless;
  endless.input_grad = endless.forward = 1e12;
  const Nanos reduce = estimate_all_reduce_time(4e9, 16, find_group_link(on.gpu, 16, 8));
  const Nanos waited = reduce / 16;
  EXPECT_EQ(estimate_update_cost(on, parameters, endless, {1}).reduce_grad,
            waited + std::llround(20.0 / 132 * static_cast<double>(reduce - waited)));
  EXPECT_EQ(estimate_update_cost(on, parameters, {}, {1}).reduce_grad, reduce);
  // Both replicas of a bidirectional schedule count as two more copies.
  EXPECT_EQ(estimate_update_cost(on, parameters, {}, {2}).reduce_grad,
            estimate_all_reduce_time(4e9, 32, find_group_link(on.gpu, 32, 8)));
}

// No rank has memory for all weights (ZeRO stage 3) or all gradients (2): they are sent with every
// micro-batch, and not again at the step's end. Two bytes per weight, four per gradient.
TEST(ZeroStages, MoveTheirShardsWithEveryMicrobatch) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  on.parallel.tensor = 8;
  on.parallel.data = 16;
  const StageParameters parameters{1e9, 0};
  const GroupLink link = find_group_link(on.gpu, 16, 8);
  const auto gather = static_cast<double>(estimate_all_gather_time(2e9, 16, link));
  const auto reduce = static_cast<double>(estimate_all_gather_time(4e9, 16, link));
  for (const std::int32_t stage : {0, 1, 2, 3}) {
    on.parallel.zero_stage = stage;
    const PhaseTimes added = with_sharding({}, on, parameters, {1});
    EXPECT_EQ(added.forward, stage == 3 ? gather : 0);
    EXPECT_EQ(added.input_grad, stage == 3 ? gather : 0);
    EXPECT_EQ(added.weight_grad, stage >= 2 ? reduce : 0);
    const UpdateCost end = estimate_update_cost(on, parameters, {}, {1});
    EXPECT_EQ(end.reduce_grad > 0, stage < 2);
    const UpdateCost by_schedule = estimate_update_cost(on, parameters, {}, {1, true, true});
    EXPECT_GT(by_schedule.reduce_grad, 0);
    EXPECT_EQ(by_schedule.optimizer, end.optimizer) << "the next step's UNSHARD gathers";
    EXPECT_EQ(with_sharding({}, on, parameters, {1, true, true}).weight_grad, 0);
  }
}

// Experts have data / expert copies, the rest has data copies: with as many expert as data ranks no
// other rank has the same experts, and there is nothing to reduce.
TEST(StepEnd, ReducesExpertsOverTheirOwnCopies) {
  ModelOnDevices on = on_devices("mixtral-8x7b", "h100");
  on.parallel.data = on.parallel.expert = 8;
  EXPECT_EQ(estimate_update_cost(on, {0, 1e9}, {}, {1}).reduce_grad, 0);
  EXPECT_GT(estimate_update_cost(on, {1e9, 0}, {}, {1}).reduce_grad, 0);
}

// Stage 0 is on ranks 0 and 1: both hold all of it.
TEST(RankMemory, OfAReplicatedStageIsOnEveryOneOfItsRanks) {
  const ModelOnDevices on = on_devices("llama3-8b", "h100");
  Schedule schedule;
  schedule.shape = shape_of(3);
  schedule.rank_of_stage = {0, 2};
  schedule.replicas_of_stage = {2, 1};
  const ModelStep step = compute_model_step(on, schedule);
  EXPECT_GT(step.states[1].weights, 0);
  EXPECT_EQ(step.states[0].weights, step.states[1].weights);
  EXPECT_EQ(step.states[0].optimizer, step.states[1].optimizer);
}

// No placement can need less than the mean of the states plus one micro-batch: both are below what
// the fullest rank of 1F1B holds, and their sum is above either.
TEST(RankMemory, LeastIsTheSumOfStatesAndOneMicrobatch) {
  const ModelOnDevices on = on_devices("gpt3-13b", "h100");
  const ModelStep step = compute_model_step(on, shape_of(4));
  Bytes states = 0;
  Bytes fullest = 0;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    states += step.states[rank].total();
    fullest = std::max(fullest, step.states[rank].total() + step.activation_bytes[rank].forward);
  }
  const Bytes least = min_bytes(on, make_unordered_schedule(shape_of(4)));
  Bytes smallest = step.activation_bytes[0].forward;
  for (const MemoryDelta& delta : step.activation_bytes)
    smallest = std::min(smallest, delta.forward);
  EXPECT_EQ(least, states / 4 + smallest);
  EXPECT_LE(least, fullest);
}

TEST(ModelRefusals, NameTheFlagAndAValueThatWorks) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  EXPECT_NE(complaint(on, 35).find("at most 34 stages, not 35; give less of `pp` or `vpp`"),
            std::string::npos)
      << complaint(on, 35);
  on.parallel.tensor = 3;
  EXPECT_NE(complaint(on, 2).find("`tp` 3 does not divide the model's heads (32); give a divisor, "
                                  "such as 2"),
            std::string::npos)
      << complaint(on, 2);
  on = on_devices("mixtral-8x7b", "h100");
  on.parallel.data = 6;
  on.parallel.expert = 4;
  EXPECT_NE(complaint(on, 2).find("`ep` 4 does not divide `dp` times `cp` (6)"), std::string::npos)
      << complaint(on, 2);
}

TEST(ModelSplit, TakesAGivenLayout) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  on.parallel.layers_of_stage = {7, 9, 9, 7};
  EXPECT_EQ(compute_model_step(on, shape_of(4)).first_layer,
            (std::vector<std::int64_t>{0, 7, 16, 25, 32}));
  on.parallel.layers_of_stage = {7, 9, 9, 8};
  EXPECT_NE(complaint(on, 4).find("33 layers t on 4 stages; write the model's 32 on 4"),
            std::string::npos)
      << complaint(on, 4);
}

// 2412.19437 and the model's page: 671 billion of the main model, and 14 billion (11.5 without the
// embedding and the head that the module shares) of the multi-token prediction module.
TEST(MultiTokenPrediction, AddsALayerAndAHeadToTheLastStage) {
  ModelOnDevices on = on_devices("deepseek-v3", "h800");
  EXPECT_EQ(on.model.predictions, 1);
  EXPECT_NEAR(static_cast<double>(count_prediction_parameters(on.model)) / 1e9, 11.6, 0.1);
  ModelOnDevices without = on;
  without.model.predictions = 0;
  const StageLoad more = StageLoads(on, 2).load(1, 31, 61);
  const StageLoad less = StageLoads(without, 2).load(1, 31, 61);
  const PhaseTimes layer = estimate_layer_times(on, 60);
  const PhaseTimes head = estimate_head_times(on);
  EXPECT_GT(more.times.forward - less.times.forward, layer.forward + head.forward);
  EXPECT_GT(more.memory.forward, less.memory.forward);
  EXPECT_EQ(more.memory.forward + more.memory.input_grad + more.memory.weight_grad, 0);
  EXPECT_EQ(StageLoads(on, 2).load(0, 0, 31).times.forward,
            StageLoads(without, 2).load(0, 0, 31).times.forward);
  EXPECT_GT(compute_model_flops_per_sample(on.model, 4096, true),
            compute_model_flops_per_sample(without.model, 4096, true));
}

// Vocabulary parallelism: the 128,256 words of embedding and head in four shards of 32,064.
TEST(SplitVocabulary, IsHeldByShardsThatAddUpToHeadAndEmbedding) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  on.parallel.layers_of_stage = {8, 8, 8, 8};
  const StageLoads undivided(on, 4);
  const StageLoads split(on, 4, 4);
  const StageLoad whole = undivided.load(3, 24, 32);
  const StageLoad less = split.load(3, 24, 32);
  const StageLoad shard = split.load_shard();
  EXPECT_DOUBLE_EQ(whole.parameters.dense - less.parameters.dense, 128'256.0 * 4096);
  EXPECT_DOUBLE_EQ(undivided.load(0, 0, 8).tables, 128'256.0 * 4096);
  EXPECT_EQ(split.load(0, 0, 8).tables, 0);
  EXPECT_DOUBLE_EQ(shard.parameters.dense, 2 * 32'064.0 * 4096);
  EXPECT_EQ(shard.tables, shard.parameters.dense);
  EXPECT_GE(4 * shard.times.forward, whole.times.forward - less.times.forward);
  EXPECT_LE(4 * shard.times.forward, 1.2 * (whole.times.forward - less.times.forward));
  EXPECT_LT(less.memory.forward + shard.memory.forward, whole.memory.forward);
  const ModelStep step = compute_model_step(on, make_unordered_schedule(shape_of(4), 4));
  ASSERT_EQ(step.costs.stages.size(), 8u);
  EXPECT_EQ(step.costs.stages[4].forward, step.costs.stages[7].forward);
  EXPECT_EQ(step.activation_bytes[5].forward, shard.memory.forward);
  EXPECT_EQ(step.first_layer, (std::vector<std::int64_t>{0, 8, 16, 24, 32}));
}

// A collective beside compute takes 20 of 132 SMs from it: even a fully hidden one costs that.
TEST(Collectives, SlowDownTheComputeBesideThem) {
  ModelOnDevices on = on_devices("llama3-70b", "h100");
  on.parallel.tensor = 8;
  const double exposed = estimate_layer_times(on, 0).forward;
  on.assumptions.tensor_exposed = 0;
  const double hidden = estimate_layer_times(on, 0).forward;
  on.assumptions.collective_sms = 0;
  const double free = estimate_layer_times(on, 0).forward;
  EXPECT_NEAR((hidden - free) / (exposed - free), 20.0 / 132, 1e-9);
}

TEST(Explanations, NameASourceForEveryNumberOfADevice) {
  for (const GpuDef& def : Registry<GpuDef>::instance().all()) {
    EXPECT_GE(def.sources.size(), 9u) << def.name;
    for (const std::string& source : def.sources)
      EXPECT_NE(source.find(": "), std::string::npos) << def.name << ": " << source;
  }
}

TEST(ModelMessages, AreAsShortAsTheirSlices) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  on.gpu.inside = {500, 1e9};  // a nanosecond per byte
  Shape shape = shape_of(2);
  const Bytes whole = 2 * on.parallel.sequence * on.model.hidden;
  EXPECT_EQ(compute_model_step(on, shape).costs.message_between[1], 500 + whole);
  shape.slices = 4;
  EXPECT_EQ(compute_model_step(on, shape).costs.message_between[1], 500 + whole / 4);
}

TEST(ModelMessages, BlockTheirSendersIfNothingOverlaps) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  ScheduleRequest request;
  request.shape = shape_of(4, 4);
  const Schedule schedule = build_schedule(find_schedule("1f1b"), request);
  const CostModel beside = compute_model_step(on, schedule).costs;
  on.assumptions.message_exposed = 1;
  const CostModel within = compute_model_step(on, schedule).costs;
  const Nanos message = beside.message_between[1];
  for (std::size_t stage = 0; stage < 4; ++stage) {
    // The last stage sends no activation, the first no gradient.
    EXPECT_EQ(within.stages[stage].forward - beside.stages[stage].forward, stage < 3 ? message : 0);
    EXPECT_EQ(within.stages[stage].backward - beside.stages[stage].backward,
              stage > 0 ? message : 0);
    EXPECT_EQ(within.stages[stage].weight_grad, beside.stages[stage].weight_grad);
  }
  EXPECT_EQ(within.message_between[1], 0);
}

// A middle stage of DeepSpeed's pipeline waits for four messages in turn, which are as long as each
// other: F for the activation that it receives and the one that it sends, B for two gradients.
TEST(ModelMessages, BlockTheirReceiversAsWellInDeepSpeed) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  ScheduleRequest request;
  request.shape = shape_of(4, 4);
  const Schedule schedule = build_schedule(find_schedule("1f1b"), request);
  const CostModel beside = compute_model_step(on, schedule).costs;
  on.assumptions.message_exposed = on.assumptions.receives_exposed = 1;
  const CostModel within = compute_model_step(on, schedule).costs;
  const Nanos message = beside.message_between[1];
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const Nanos messages = stage == 0 || stage == 3 ? 1 : 2;
    EXPECT_EQ(within.stages[stage].forward - beside.stages[stage].forward, messages * message);
    EXPECT_EQ(within.stages[stage].backward - beside.stages[stage].backward, messages * message);
  }
  on.assumptions.message_exposed = 0;
  EXPECT_EQ(compute_model_step(on, schedule).costs.stages[1].forward, beside.stages[1].forward);
}

// 12 bytes per weight and micro-batch over 90 % of 2 TB/s; F and I stay as they are.
TEST(ModelGradients, AreAccumulatedByAKernelIfTheGemmsDoNot) {
  ModelOnDevices on = on_devices("megatron-22b", "a100");
  on.parallel.tensor = 8;
  on.parallel.embedding_layers = on.parallel.head_layers = 0;
  const StageCost fused = compute_model_step(on, shape_of(4)).costs.stages[1];
  on.assumptions.accumulation_bytes = 12;
  const StageCost separate = compute_model_step(on, shape_of(4)).costs.stages[1];
  const double weights = 12 * (12.0 * 6144 * 6144 / 8 + 4 * 6144);  // 12 of 48 layers
  EXPECT_NEAR(static_cast<double>(separate.weight_grad - fused.weight_grad),
              12 * weights / (0.9 * 2e12) * 1e9, 2);
  EXPECT_EQ(separate.forward, fused.forward);
  EXPECT_EQ(separate.input_grad, fused.input_grad);
}

// BPipe: rank r evicts to rank p-1-r; --offload evicts to the host's memory.
TEST(ModelCopies, TakeTheLinkToTheOffloadTarget) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  on.gpu.inside = {500, 1e9};
  on.gpu.host = {700, 0.5e9};
  ScheduleRequest request;
  request.shape = shape_of(4, 8);
  Schedule schedule = build_schedule(find_schedule("bpipe"), request);
  const Bytes kept = compute_model_step(on, schedule).activation_bytes[1].forward;
  const CostModel to_partner = find_model_costs(on, require_valid(schedule), {}).costs;
  EXPECT_EQ(to_partner.stages[1].evict, 500 + kept);
  EXPECT_EQ(to_partner.stages[1].load, 500 + kept);
  schedule.offload_target_of_rank = host_offload_targets(4);
  EXPECT_EQ(find_model_costs(on, require_valid(schedule), {}).costs.stages[1].evict,
            700 + 2 * kept);
}

}  // namespace
}  // namespace bubblescope::tests
