// Makes the Config of a prediction from flags and the content of files.
#include "tools/inputs/inputs.h"

#include <fmt/format.h>

#include <utility>

#include "sim/ir/error.h"
#include "sim/model/place_stages.h"
#include "tools/flags/recompute_options.h"
#include "tools/flags/uneven_ends_options.h"

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

/// Sets the modules or layers that are computed again, for which --recompute need not be given:
/// find_unstated_defaults() says that it is assumed.
void recompute_parts(Parallelism& parallel, const PredictOptions& flags) {
  const std::vector<Recompute>& recompute = flags.moves.recompute;
  const auto may_be = [&](Recompute needed) { return recompute.empty() || recompute[0] == needed; };
  const bool names_layers = flags.model.recompute_method || flags.model.recompute_layers;
  if (!parallel.modules.empty()) {
    if (names_layers || !may_be(Recompute::kSelective))
      throw Error(
          "--recompute-modules says what --recompute selective computes again; give that, or leave "
          "one of them out");
    parallel.recompute = Recompute::kSelective;
  }
  if (!names_layers) return;
  if (!may_be(Recompute::kFull))
    throw Error(
        "--recompute-method and --recompute-num-layers say which layers --recompute full covers; "
        "give that, or leave them out");
  parallel.recompute = Recompute::kFull;
  parallel.recomputed =
      choose_recomputed_layers(flags.model.recompute_method, flags.model.recompute_layers);
}

/// The model with what flags say of the step: recomputation, layout and how ops are executed.
ModelOnDevices adapt_model(ModelOnDevices on, const PredictOptions& flags) {
  const std::vector<Recompute>& recompute = flags.moves.recompute;
  if (recompute.size() > 1)
    throw Error("--model recomputes every stage alike; give --recompute one entry");
  if (!recompute.empty()) on.parallel.recompute = recompute[0];
  recompute_parts(on.parallel, flags);
  if (flags.cost.end.reduction == GradReduction::kSerial) on.assumptions.gradients_exposed = 1;
  on.assumptions.pairs_hide_exchange = flags.cost.lower.overlap == Overlap::kFused && !on.parts;
  if (flags.model.gradients) on.parallel.gradients = *flags.model.gradients;
  if (flags.loss) on.replaced.emplace_back("a lost rank");
  if (flags.policy) on.replaced.emplace_back("an order that ranks choose during the step");
  expect_one_rule(on.parallel.ends);
  if (on.parallel.ends.any() && !flags.shape.layout.empty())
    throw Error(
        "--layout has the layers of every stage; leave --first-layers, --last-layers and "
        "--account-for-... out");
  on.parallel.layers_of_stage = layers_of(flags.shape.layout, on.model);
  if (flags.shape.ranks) on.rank_gpus = spread_devices(on.rank_gpus, *flags.shape.ranks);
  return on;
}

CostSource choose_cost_source(const PredictOptions& flags, const InputFiles& files) {
  expect_one_cost_source(flags);
  const CostOptions& cost = flags.cost;
  const ShapeOptions& shape = flags.shape;
  if (flags.model.given())
    return ModelCosts{adapt_model(files.model.value(), flags), cost.end, !flags.model.gradients,
                      flags.model.tries_splits};
  if (!cost.file.empty()) return files.costs.value();
  if (!shape.layout.empty()) return LayoutCosts{cost.uniform, shape.layout, shape.layer_costs};
  return UniformCosts{cost.uniform, cost.network};
}

/// With a model there is no recomputation among the moves, because the model's backwards include
/// it.
Moves choose_moves(const PredictOptions& flags) {
  Moves moves;
  if (!flags.model.given()) moves.recompute = flags.moves.recompute;
  if (flags.moves.offload && flags.moves.offload->share > 0) moves.offload = flags.moves.offload;
  // A release requested by name waits for its reductions; otherwise nothing does.
  const Profile profile = flags.shape.profile;
  if (flags.shape.sharded)
    moves.sharding = {choose_release(profile), profile == Profile::kPytorch215,
                      flags.shape.lookahead};
  // Ranks that choose their order, and those that take over a lost one's, post nothing.
  moves.takes_turns_of_215 = profile == Profile::kPytorch215 && !flags.policy && !flags.loss &&
                             flags.cost.lower.waits_for_messages();
  return moves;
}

Config make_config(const PredictOptions& flags, const InputFiles& files) {
  const NoiseOptions& noise = flags.noise;
  Config config{flags};  // its StepConditions
  config.arrivals = files.arrivals;
  config.lower = flags.cost.lower;
  config.costs = choose_cost_source(flags, files);
  config.memory = flags.memory;
  config.memory.per = flags.cost.uniform.per;
  config.moves = choose_moves(flags);
  config.slow_ranks = noise.slow_ranks;
  config.scenarios = {noise.noise, noise.seeds, noise.sensitivity};
  return config;
}

}  // namespace

PredictInputs::PredictInputs(PredictOptions flags, InputFiles files)
    : flags_(std::move(flags)), files_(std::move(files)), config_(make_config(flags_, files_)) {}

PredictInputs PredictInputs::with(const std::function<void(PredictOptions& flags)>& change) const {
  PredictOptions flags = flags_;
  change(flags);
  return PredictInputs(std::move(flags), files_);
}

}  // namespace bubblescope::tools
