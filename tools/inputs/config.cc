// Fills in the Config of a prediction from options.
#include "tools/inputs/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "sim/ir/error.h"
#include "sim/model/model_step.h"
#include "sim/model/place_stages.h"
#include "sim/predict/choose_lowering.h"
#include "tools/flags/arrival_options.h"
#include "traces/costs/megatron_layout.h"

namespace bubblescope::tools {

namespace {

/// Transformer layers per stage. The embedding is on the first stage; the head and the multi-token
/// prediction layers are on the last, as in the model.
std::vector<std::int64_t> layers_of(const LayerLayout& layout, const Transformer& model) {
  std::vector<std::int64_t> layers;
  std::int64_t predictions = 0;
  for (const StageLayers& stage : layout) {
    layers.push_back(stage.transformers);
    predictions += stage.predictions;
  }
  if (predictions == 0) return layers;
  if (model.predictions == 0)
    throw Error(
        "--layout with --model: the model has no layer for multi-token prediction (m); leave m "
        "out");
  if (predictions != model.predictions)
    throw Error(
        fmt::format("--layout with --model: the layout has {} m, and the model {}; write "
                    "as many, or leave m out",
                    predictions, model.predictions));
  if (layout.back().predictions != predictions)
    throw Error("--layout with --model: m is on the last stage; write it there, or leave it out");
  return layers;
}

std::string uniform_text(const UniformCost& cost) {
  const char* per = cost.per == UniformCost::Per::kRank    ? "rank"
                    : cost.per == UniformCost::Per::kChunk ? "chunk"
                                                           : "slice";
  std::string text = fmt::format("f {}, b {}, i {}, w {} per {}, p2p {}", to_text(cost.forward),
                                 to_text(cost.full_backward()), to_text(cost.input_grad),
                                 to_text(cost.weight_grad), per, to_text(cost.message));
  if (cost.output_layer > 0) text += ", output layer " + to_text(cost.output_layer);
  return text;
}

CostSource choose_cost_source(const PredictOptions& options) {
  expect_one_cost_source(options);
  const CostOptions& cost = options.cost;
  const ShapeOptions& shape = options.shape;
  if (options.model.given())
    return ModelCosts{resolve_model(options), cost.end, !options.model.gradients,
                      options.model.tries_splits};
  if (!cost.file.empty()) return cost_file_of(cost);
  if (!shape.layout.empty()) return LayoutCosts{cost.uniform, shape.layout, shape.layer_costs};
  return UniformCosts{cost.uniform, cost.network};
}

}  // namespace

void set_execution(ModelOnDevices& on, const PredictOptions& options) {
  if (options.cost.end.reduction == GradReduction::kSerial) on.assumptions.gradients_exposed = 1;
  on.assumptions.pairs_hide_exchange = options.cost.lower.overlap == Overlap::kFused && !on.parts;
}

ModelOnDevices resolve_model(const PredictOptions& options) {
  const std::vector<Recompute>& recompute = options.moves.recompute;
  if (recompute.size() > 1)
    throw Error("--model recomputes every stage alike; give --recompute one entry");
  ModelOnDevices on = options.model.on_devices ? *options.model.on_devices : resolve(options.model);
  if (!recompute.empty()) on.parallel.recompute = recompute[0];
  if (!on.parallel.modules.empty()) {
    if (!recompute.empty() && recompute[0] != Recompute::kSelective)
      throw Error(
          "--recompute-modules says what --recompute selective computes again; give that, or leave "
          "one of them out");
    on.parallel.recompute = Recompute::kSelective;
  }
  set_execution(on, options);
  if (options.model.gradients) on.parallel.gradients = *options.model.gradients;
  if (options.loss) on.replaced.emplace_back("a lost rank");
  if (options.policy) on.replaced.emplace_back("an order that ranks choose during the step");
  on.parallel.layers_of_stage = layers_of(options.shape.layout, on.model);
  if (options.shape.ranks) on.rank_gpus = spread_devices(on.rank_gpus, *options.shape.ranks);
  return on;
}

UniformMemory choose_memory(const PredictOptions& options) {
  UniformMemory memory = options.memory;
  memory.per = options.cost.uniform.per;
  return memory;
}

Moves choose_moves(const PredictOptions& options) {
  Moves moves;
  if (!options.model.given()) moves.recompute = options.moves.recompute;
  if (options.moves.offload && options.moves.offload->share > 0)
    moves.offload = options.moves.offload;
  // A release requested by name waits for its reductions; otherwise nothing does.
  const Profile profile = options.shape.profile;
  if (options.shape.sharded)
    moves.sharding = {choose_release(profile), profile == Profile::kPytorch215,
                      options.shape.lookahead};
  // Ranks that choose their order, and those that take over a lost one's, post nothing.
  moves.takes_turns_of_215 = profile == Profile::kPytorch215 && !options.policy && !options.loss &&
                             options.cost.lower.waits_for_messages();
  return moves;
}

Config make_config(const PredictOptions& options) {
  const NoiseOptions& noise = options.noise;
  Config config{options};  // its StepConditions
  config.lower = options.cost.lower;
  config.costs = choose_cost_source(options);
  config.memory = choose_memory(options);
  config.moves = choose_moves(options);
  config.slow_ranks = noise.slow_ranks;
  config.scenarios = {noise.noise, noise.seeds, noise.sensitivity};
  return config;
}

LowerOptions choose_lowering(const Schedule& schedule, const PredictOptions& options) {
  return sim::choose_lowering(schedule, options.cost.lower, choose_moves(options), options,
                              options.model.given() ? &options.cost.end : nullptr);
}

namespace {

/// The other choices that decide a model's times, where they are not as usual, so that reports that
/// differ do not say the same.
std::string unusual_text(const ModelOnDevices& on) {
  std::string text;
  if (on.matrices == MatrixType::kFp8) text += ", GEMMs in fp8";
  if (on.runtime != ModelOnDevices{}.runtime) text += ", runtime " + on.runtime;
  if (on.assumptions.slowdown != 1) text += fmt::format(", slowdown {:g}", on.assumptions.slowdown);
  if (!on.replaced.empty()) text += fmt::format(", with {}", fmt::join(on.replaced, ", "));
  return text;
}

}  // namespace

std::map<std::string, std::string> list_conditions(const PredictOptions& options) {
  std::map<std::string, std::string> conditions;
  const auto add = [&](const char* field, const std::string& value) {
    std::string& all = conditions[field];
    all += (all.empty() ? "" : " ") + value;
  };
  for (const Injection& injection : options.injections) add("inject", to_string(injection));
  for (const SlowRank& slow : options.noise.slow_ranks)
    add("slow", fmt::format("rank={},factor={:g}", slow.rank, slow.factor));
  if (!options.arrivals_file.empty()) add("arrivals", options.arrivals_file);
  if (options.policy) add("policy", policy_text(*options.policy));
  return conditions;
}

std::string costs_text(const Models& models, const PredictOptions& options) {
  const LayerLayout& layout = options.shape.layout;
  std::string text = models.placed               ? describe_model(models.placed->on)
                     : options.cost.file.empty() ? uniform_text(options.cost.uniform)
                                                 : options.cost.file;
  if (models.placed) text += unusual_text(models.placed->on);
  if (!layout.empty()) text += ", layout " + traces::to_string(layout);
  if (options.cost.network) text += ", network " + to_string(*options.cost.network);
  return text;
}

}  // namespace bubblescope::tools
