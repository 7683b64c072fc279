// Hybrid sharding: groups of ranks share the shards of one copy, and groups have copies.
#include <gtest/gtest.h>

#include "sim/ir/registry.h"
#include "sim/model/gpu.h"
#include "sim/model/layer_cost.h"
#include "sim/model/model_step.h"
#include "sim/model/runtime.h"
#include "sim/model/stage_states.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

ModelOnDevices sharded(std::int32_t data, std::int32_t zero_stage) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find("llama3-8b")->model;
  on.gpu = Registry<GpuDef>::instance().find("h100")->gpu;
  on.parallel.sequence = on.model.sequence;
  on.parallel.data = data;
  on.parallel.zero_stage = zero_stage;
  return on;
}

// 8 billion numbers: 2 bytes of weight, 4 of gradient and 12 of Adam over 8 ranks, however many
// groups of 8 there are.
TEST(HybridSharding, HoldsTheShardsOfItsGroup) {
  ModelOnDevices on = sharded(64, 3);
  on.parallel.shard_ranks = 8;
  const StateBytes states = count_states(on.parallel, {8e9, 0});
  EXPECT_EQ(states.weights, 2'000'000'000);
  EXPECT_EQ(states.gradients, 4'000'000'000);
  EXPECT_EQ(states.optimizer, 12'000'000'000);
  EXPECT_EQ(states.total(), count_states(sharded(8, 3).parallel, {8e9, 0}).total());
}

// Weights are gathered inside a node. Gradients are scattered there, and each rank adds its eighth
// to those of the 7 other nodes over its own NIC.
TEST(HybridSharding, GathersInsideItsGroupAndReducesBeyondIt) {
  ModelOnDevices on = sharded(64, 3);
  on.parallel.shard_ranks = 8;
  const auto gather = static_cast<double>(estimate_all_gather_time(2e9, 8, on.gpu.inside));
  const auto reduce = static_cast<double>(estimate_all_gather_time(4e9, 8, on.gpu.inside) +
                                          estimate_all_reduce_time(0.5e9, 8, on.gpu.outside));
  const PhaseTimes added = with_sharding({}, on, {1e9, 0}, {1});
  EXPECT_EQ(added.forward, gather);
  EXPECT_EQ(added.input_grad, gather);
  EXPECT_EQ(added.weight_grad, reduce);
}

TEST(HybridSharding, OfAllRanksIsPlainSharding) {
  ModelOnDevices all = sharded(64, 3);
  const PhaseTimes plain = with_sharding({}, all, {1e9, 0}, {1});
  all.parallel.shard_ranks = 64;
  const PhaseTimes one_group = with_sharding({}, all, {1e9, 0}, {1});
  EXPECT_EQ(one_group.forward, plain.forward);
  EXPECT_EQ(one_group.weight_grad, plain.weight_grad);
}

/// A billion parameters over 64 ranks, gathered in 16 bits and reduced in 32.
struct WholeCollectives {
  Nanos gather = 0;
  Nanos reduce = 0;

  explicit WholeCollectives(const ModelOnDevices& on)
      : gather(estimate_all_gather_time(2e9, 64, find_group_link(on.gpu, 64, 1))),
        reduce(estimate_all_gather_time(4e9, 64, find_group_link(on.gpu, 64, 1))) {}
};

// The schedule's ops take all of the time of what they move, and no other op takes any of it.
TEST(ShardsOfASchedule, AreMovedByItsOps) {
  const StageSharing by_schedule{
      .holders = 1, .gathered_by_schedule = true, .reduced_by_schedule = true};
  for (std::int32_t zero_stage = 1; zero_stage <= 3; ++zero_stage) {
    const ModelOnDevices on = sharded(64, zero_stage);
    const WholeCollectives whole(on);
    const PhaseTimes added = with_sharding({}, on, {1e9, 0}, by_schedule);
    EXPECT_EQ(added.forward + added.input_grad + added.weight_grad, 0) << zero_stage;
    const UpdateCost update = estimate_update_cost(on, {1e9, 0}, {1e12, 1e12, 1e12}, by_schedule);
    EXPECT_EQ(update.reduce_grad, whole.reduce) << zero_stage;
    EXPECT_EQ(update.unshard, zero_stage == 3 ? whole.gather : 0)
        << zero_stage << ": below stage 3 every rank has the weights";
  }
}

// A list that only reduces leaves the gathering to the ops of micro-batches.
TEST(ShardsOfASchedule, AreGatheredByMicrobatchesWhereNoOpGathersThem) {
  const ModelOnDevices on = sharded(64, 3);
  const WholeCollectives whole(on);
  const PhaseTimes added = with_sharding({}, on, {1e9, 0}, {1, false, true});
  EXPECT_EQ(added.forward, static_cast<double>(whole.gather));
  EXPECT_EQ(added.input_grad, static_cast<double>(whole.gather));
  EXPECT_EQ(added.weight_grad, 0);
}

// The schedule reduces once per step, and gradients are whole until then.
TEST(ShardsOfASchedule, OfGradientsExistBehindItsReductions) {
  for (const std::int32_t zero_stage : {2, 3}) {
    ModelOnDevices on = sharded(64, zero_stage);
    EXPECT_EQ(count_states(on.parallel, {8e9, 0}).gradients, 500'000'000);
    on.parallel.whole_gradients = true;
    EXPECT_EQ(count_states(on.parallel, {8e9, 0}).gradients, 32'000'000'000);
  }
}

// Gradients are reduced beside the whole backward: an I as long as the reduction hides all of it
// but the last sixteenth, and is slowed down by the SMs that the rest takes.
TEST(Sharding, HidesReductionsBehindTheWholeBackward) {
  const ModelOnDevices on = sharded(64, 2);
  const auto reduce = static_cast<double>(WholeCollectives(on).reduce);
  const PhaseTimes hidden = with_sharding({0, reduce, 0}, on, {1e9, 0}, {1});
  EXPECT_EQ(hidden.input_grad, reduce);
  EXPECT_NEAR(hidden.weight_grad, reduce * (1 + 15 * on.assumptions.collective_sms) / 16, 2);
  EXPECT_EQ(with_sharding({0, 0, reduce}, on, {1e9, 0}, {1}).weight_grad,
            reduce + hidden.weight_grad);
}

// Weights and gradients share a network. Where both take longer than the backward, the step takes
// as long as they do; compute that they slow down ends before them all the same.
TEST(Sharding, TakesAsLongAsItsNetworkWhereThatIsTheSlowest) {
  const ModelOnDevices on = sharded(64, 3);
  const WholeCollectives whole(on);
  const auto gather = static_cast<double>(whole.gather);
  const auto reduce = static_cast<double>(whole.reduce);
  for (const double part : {0.0, 0.2, 0.5}) {
    const PhaseTimes times =
        with_sharding({part * gather, part * gather, part * gather}, on, {1e9, 0}, {1});
    EXPECT_NEAR(times.forward, gather, 2) << part;
    EXPECT_NEAR(times.input_grad + times.weight_grad, gather + reduce, 4) << part;
  }
}

// Without ZeRO nothing is sharded, so that there are no groups that could hold copies.
TEST(HybridSharding, NeedsStatesThatAreSharded) {
  ModelOnDevices on = sharded(64, 0);
  const Nanos whole = estimate_update_cost(on, {1e9, 0}, {}, {1}).reduce_grad;
  on.parallel.shard_ranks = 8;
  EXPECT_EQ(estimate_update_cost(on, {1e9, 0}, {}, {1}).reduce_grad, whole);
}

TEST(HybridSharding, RefusesGroupsThatDoNotFit) {
  ModelOnDevices on = sharded(12, 3);
  on.parallel.shard_ranks = 8;
  Shape shape;
  shape.microbatches = 4;
  EXPECT_EQ(error_of([&] { compute_model_step(on, shape); }),
            "`shard_size` 8 does not divide `dp` times `cp` (12); give a divisor, such as 6");
}

// Without synchronization until the last micro-batch, gradients are whole and reduced once.
TEST(WholeGradients, AreReducedOncePerStep) {
  ModelOnDevices on = sharded(8, 3);
  const PhaseTimes every_time = with_sharding({}, on, {1e9, 0}, {1});
  const Nanos not_at_the_end = estimate_update_cost(on, {1e9, 0}, {}, {1}).reduce_grad;
  assume(on, "whole_gradients", 1);
  const PhaseTimes once = with_sharding({}, on, {1e9, 0}, {1});
  const auto reduce = static_cast<double>(estimate_all_gather_time(4e9, 8, on.gpu.inside));
  EXPECT_EQ(every_time.weight_grad - once.weight_grad, reduce);
  EXPECT_EQ(once.forward, every_time.forward) << "weights are gathered as often";
  EXPECT_EQ(not_at_the_end, 0);
  EXPECT_EQ(static_cast<double>(estimate_update_cost(on, {1e9, 0}, {}, {1}).reduce_grad), reduce);
  EXPECT_EQ(count_states(on.parallel, {1e9, 0}).gradients, 4'000'000'000);
}

}  // namespace
}  // namespace bubblescope::tests
