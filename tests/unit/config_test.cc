// The Config that follows from flags: one source of costs, and moves that fit it.
#include <gtest/gtest.h>

#include <variant>

#include "sim/ir/error.h"
#include "sim/predict/choose_lowering.h"
#include "tests/support/error_text.h"
#include "tools/inputs/inputs.h"

namespace bubblescope::tests {
namespace {

Config make_config(const tools::PredictOptions& flags) {
  return tools::read_inputs(flags, {}).config();
}

tools::PredictOptions options_with_model() {
  tools::PredictOptions options;
  options.model.model = "llama3-8b";
  return options;
}

const ModelCosts& model_of(const Config& config) { return std::get<ModelCosts>(config.costs); }

TEST(Config, TakesCostsFromTheSourceThatFlagsName) {
  tools::PredictOptions options;
  EXPECT_TRUE(std::holds_alternative<UniformCosts>(make_config(options).costs));
  options.shape.layout.resize(4);
  EXPECT_EQ(std::get<LayoutCosts>(make_config(options).costs).layout.size(), 4U);
  options.shape.layout.clear();
  options.cost.file = "costs.json";
  CostTable table;
  table.norm = 7;
  const tools::PredictInputs inputs(options, {.costs = table});
  EXPECT_EQ(std::get<CostTable>(inputs.config().costs).norm, 7);
  EXPECT_EQ(model_of(make_config(options_with_model())).on.model.layers, 32);
}

// Other flags make other inputs, of the same files.
TEST(Config, FollowsFromTheFlagsOfItsInputs) {
  const tools::PredictInputs read = tools::read_inputs(options_with_model(), {});
  const tools::PredictInputs other = read.with([](tools::PredictOptions& flags) {
    flags.policy = ReadyPriority::kOrder;
    flags.model.gradients = Gradients::kBf16;
  });
  EXPECT_FALSE(read.config().policy);
  EXPECT_EQ(other.config().policy, ReadyPriority::kOrder);
  EXPECT_EQ(model_of(other.config()).on.parallel.gradients, Gradients::kBf16);
  EXPECT_EQ(other.files().model->parallel.gradients, Gradients::kFp32);
  EXPECT_THROW(tools::PredictInputs{options_with_model()}, std::bad_optional_access) << "not read";
}

TEST(Config, RefusesTwoSources) {
  tools::PredictOptions options = options_with_model();
  options.cost.any_uniform = true;
  EXPECT_TRUE(fails_with([&] { make_config(options); }, "--model gives all costs; leave out "));
  options = {};
  options.cost.file = "costs.json";
  options.shape.layout.resize(4);
  EXPECT_EQ(error_of([&] { make_config(options); }),
            "--costs has the times of every stage; leave --layout out");
}

// Each flag says how its own part of the end is, and leaves the other part as usual.
TEST(Config, EndsAModelsStepAsUsualButForWhatAFlagSays) {
  tools::PredictOptions options = options_with_model();
  const auto end_of = [](const tools::PredictOptions& given) {
    return choose_lowering(Schedule{}, make_config(given)).update;
  };
  EXPECT_EQ(end_of(options).optimizer, OptimizerMode::kBarrier);
  EXPECT_EQ(end_of(options).reduction, GradReduction::kOverlap);
  options.cost.end.optimizer = OptimizerMode::kLocal;
  EXPECT_EQ(end_of(options).optimizer, OptimizerMode::kLocal);
  EXPECT_EQ(end_of(options).reduction, GradReduction::kOverlap);
  options.cost.end = {{}, GradReduction::kNone};
  EXPECT_EQ(end_of(options).optimizer, OptimizerMode::kBarrier);
  EXPECT_EQ(end_of(options).reduction, GradReduction::kNone);
}

TEST(Config, LowersAsFlagsSay) {
  tools::PredictOptions options;
  const auto lowering_of = [&] { return choose_lowering(Schedule{}, make_config(options)); };
  EXPECT_FALSE(lowering_of().gathers_in_place);
  EXPECT_FALSE(lowering_of().update.in_any_order);
  options.policy = ReadyPriority::kOrder;
  EXPECT_TRUE(lowering_of().update.in_any_order);
  options.shape.sharded = true;
  EXPECT_FALSE(lowering_of().gathers_in_place);
  options.shape.lookahead = UnshardLookahead{};
  EXPECT_TRUE(lowering_of().gathers_in_place);
}

TEST(Config, ShrinksGradientsUnlessAFlagChoosesThem) {
  tools::PredictOptions options = options_with_model();
  EXPECT_TRUE(model_of(make_config(options)).may_shrink_gradients);
  options.model.gradients = Gradients::kBf16;
  const Config config = make_config(options);
  EXPECT_FALSE(model_of(config).may_shrink_gradients);
  EXPECT_EQ(model_of(config).on.parallel.gradients, Gradients::kBf16);
}

// A model's backwards include what they recompute; other costs need ops of their own for it.
TEST(Config, GivesRecomputationToTheModelOrToTheSchedule) {
  tools::PredictOptions options;
  options.moves.recompute = {Recompute::kFull};
  EXPECT_EQ(make_config(options).moves.recompute, options.moves.recompute);
  options.model = options_with_model().model;
  const Config config = make_config(options);
  EXPECT_TRUE(config.moves.recompute.empty());
  EXPECT_EQ(model_of(config).on.parallel.recompute, Recompute::kFull);
}

TEST(Config, ShardsByTheRulesOfTheProfile) {
  tools::PredictOptions options;
  EXPECT_FALSE(make_config(options).moves.any());
  options.shape.sharded = true;
  EXPECT_FALSE(make_config(options).moves.sharding->waits_for_reductions);
  options.shape.profile = Profile::kPytorch;
  EXPECT_EQ(make_config(options).moves.sharding->release, PytorchRelease::kFrom26);
  options.shape.profile = Profile::kPytorch215;
  EXPECT_EQ(make_config(options).moves.sharding->release, PytorchRelease::kFrom215);
  EXPECT_TRUE(make_config(options).moves.sharding->waits_for_reductions);
}

TEST(Config, MeasuresMemoryInTheUnitOfTheCosts) {
  tools::PredictOptions options;
  options.cost.uniform.per = UniformCost::Per::kChunk;
  EXPECT_EQ(make_config(options).memory.per, UniformCost::Per::kChunk);
}

}  // namespace
}  // namespace bubblescope::tests
