// Enumerates devices -> tensor, context, pipeline and data ranks -> micro-batches -> schedules,
// splits.
#include "tools/plan/model_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/registry.h"
#include "sim/model/place_stages.h"
#include "sim/model/runtime.h"
#include "sim/model/schedule_def.h"
#include "sim/model/stage_loads.h"
#include "tools/flags/model_options.h"
#include "tools/flags/recompute_options.h"
#include "tools/inputs/inputs.h"
#include "tools/plan/what_if.h"

namespace bubblescope::tools {

namespace {

std::vector<std::int32_t> powers_of_two(std::int64_t max_value) {
  std::vector<std::int32_t> powers;
  for (std::int64_t power = 1; power <= max_value; power *= 2)
    powers.push_back(static_cast<std::int32_t>(power));
  return powers;
}

std::vector<std::int32_t> divisors(std::int32_t number, std::int64_t max_value) {
  std::vector<std::int32_t> found;
  for (std::int32_t divisor = 1; divisor <= std::min<std::int64_t>(number, max_value); ++divisor)
    if (number % divisor == 0) found.push_back(divisor);
  return found;
}

/// Expands each configuration to every value of one axis.
template <class Value, class Set>
std::vector<Configuration> varied(const std::vector<Configuration>& configurations,
                                  const std::vector<Value>& values, Set set) {
  expect_plannable(configurations.size() * values.size());
  std::vector<Configuration> all;
  for (const Configuration& configuration : configurations)
    for (const Value& value : values) set(all.emplace_back(configuration), value);
  return all;
}

/// Remaining ranks train on other data; configurations that do not divide evenly are left out.
std::vector<Configuration> with_data_ranks(std::vector<Configuration> configurations,
                                           std::int64_t devices) {
  std::erase_if(configurations, [&](Configuration& next) {
    const std::int64_t pipeline = std::int64_t{next.tensor} * next.context * next.shape.ranks;
    next.data = static_cast<std::int32_t>(devices / pipeline);
    return devices % pipeline != 0;
  });
  return configurations;
}

std::vector<Configuration> with_microbatches(std::vector<Configuration> configurations,
                                             std::int64_t batch) {
  std::erase_if(configurations, [&](Configuration& next) {
    const std::int64_t samples = std::int64_t{next.data} * next.micro_batch_size;
    next.shape.microbatches = static_cast<std::int32_t>(batch / samples);
    return batch % samples != 0;
  });
  return configurations;
}

template <class Value>
std::ptrdiff_t place_in(const std::vector<Value>& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) - values.begin();
}

std::set<std::int32_t> data_ranks(const std::vector<Configuration>& configurations) {
  std::set<std::int32_t> ranks;
  for (const Configuration& configuration : configurations) ranks.insert(configuration.data);
  return ranks;
}

/// Numbers of ranks that can share the experts: the divisors of a model's experts.
std::vector<std::int32_t> expert_ranks(const Transformer& model) {
  std::vector<std::int32_t> ranks{1};
  if (!model.experts) return ranks;
  for (std::int64_t count = 2; count <= model.experts->count; count *= 2)
    if (model.experts->count % count == 0) ranks.push_back(static_cast<std::int32_t>(count));
  return ranks;
}

/// The devices of a node, where tensor ranks belong; the fewest where devices differ.
std::int32_t find_smallest_node(const ModelOnDevices& on) {
  std::int32_t smallest = on.gpu.per_node;
  for (const Gpu& gpu : on.rank_gpus) smallest = std::min(smallest, gpu.per_node);
  return smallest;
}

/// Returns the virtual sizes to try: all that divide the layers of a rank, and a few that split
/// them unevenly.
std::vector<std::int32_t> chunks_of(const Transformer& model, std::int32_t ranks) {
  const std::int64_t layers = (model.layers + ranks - 1) / ranks;
  std::vector<std::int32_t> chunks = divisors(static_cast<std::int32_t>(layers), layers);
  for (const std::int32_t power : powers_of_two(8))
    if (std::find(chunks.begin(), chunks.end(), power) == chunks.end()) chunks.push_back(power);
  std::sort(chunks.begin(), chunks.end());
  return chunks;
}

/// The choices that a runtime has: only Megatron-Core's names modules. Throws Error if none is
/// left.
std::vector<RecomputeChoice> possible_recomputes(std::vector<RecomputeChoice> choices,
                                                 const std::string& name) {
  const RuntimeDef* const runtime = Registry<RuntimeDef>::instance().find(name);
  if (runtime == nullptr || runtime->names_modules) return choices;
  std::erase_if(choices, [](const RecomputeChoice& choice) { return choice.chooses_modules; });
  if (choices.empty())
    throw Error(
        fmt::format("--recompute modules are those of Megatron-Core, and --runtime {} names none; "
                    "give none, selective or full",
                    name));
  return choices;
}

/// The choices with full recomputation once for each number of layers. Throws Error if there is
/// none.
std::vector<RecomputeChoice> with_recomputed_layers(const std::vector<RecomputeChoice>& choices,
                                                    const ModelAxes& axes) {
  if (!axes.recompute_method && axes.recompute_layers.empty()) return choices;
  std::vector<RecomputedLayers> covered;
  for (const std::int32_t number : axes.recompute_layers)
    covered.push_back(choose_recomputed_layers(axes.recompute_method, number));
  if (covered.empty())
    covered.push_back(choose_recomputed_layers(axes.recompute_method, std::nullopt));
  std::vector<RecomputeChoice> all;
  bool any_full = false;
  for (const RecomputeChoice& choice : choices) {
    if (choice.recompute != Recompute::kFull) {
      all.push_back(choice);
      continue;
    }
    any_full = true;
    for (const RecomputedLayers& layers : covered)
      all.push_back(layers.covered(1) == 0 ? RecomputeChoice{}
                                           : RecomputeChoice{Recompute::kFull, false, layers});
  }
  if (!any_full)
    throw Error(
        "--recompute-method and --recompute-num-layers say which layers --recompute full covers; "
        "give that as well, or leave them out");
  return all;
}

}  // namespace

ModelPlanner::ModelPlanner(PredictInputs inputs, ModelAxes axes)
    : inputs_(std::move(inputs)), axes_(std::move(axes)) {
  if (axes_.gpus < 1) throw Error("a plan for a model needs --gpus, such as --gpus 64");
  if (axes_.global_batch < 1)
    throw Error("a plan for a model needs --global-batch-size, such as --global-batch-size 512");
  const bool looks_ahead = std::any_of(axes_.lookaheads.begin(), axes_.lookaheads.end(),
                                       [](const auto& lookahead) { return lookahead.has_value(); });
  const bool limits_sends = std::any_of(axes_.send_budgets.begin(), axes_.send_budgets.end(),
                                        [](std::int32_t budget) { return budget > 0; });
  const Profile profile = inputs_.flags().shape.profile;
  if ((looks_ahead || limits_sends) && profile != Profile::kNone &&
      resolve_profile(profile) != Profile::kPytorch)
    throw Error(fmt::format("{} is an option of PyTorch's; leave it out, or --profile {}",
                            looks_ahead ? "--unshard-lookahead" : "--send-budget",
                            name_of(kProfiles, profile)));
  if (looks_ahead && model().parallel.zero_stage < 3)
    throw Error(
        "--unshard-lookahead says how far ahead the shards of --zero 3 are gathered; add --zero 3");
  if (!model().model.experts) axes_.expert_tensor.clear();
  if (axes_.tensor.empty()) axes_.tensor = powers_of_two(find_smallest_node(model()));
  if (axes_.context.empty()) axes_.context = {1};
  if (axes_.micro_batch_sizes.empty())
    axes_.micro_batch_sizes = {kUsualMicroBatchSizes.begin(), kUsualMicroBatchSizes.end()};
  chooses_ranks_ = axes_.ranks.empty();
  if (chooses_ranks_) axes_.ranks = divisors(axes_.gpus, max_stages(model().model));
  axes_.recomputes = with_recomputed_layers(
      possible_recomputes(std::move(axes_.recomputes), model().runtime), axes_);
}

bool ModelPlanner::tries_without_recomputation() const {
  return std::any_of(
      axes_.recomputes.begin(), axes_.recomputes.end(),
      [](const RecomputeChoice& choice) { return choice.recompute == Recompute::kNone; });
}

bool ModelPlanner::allows(Bytes held) const {
  const std::vector<Bytes>& caps = inputs_.config().memory.cap_bytes;
  return std::all_of(caps.begin(), caps.end(), [held](Bytes cap) { return held <= cap; });
}

std::int64_t ModelPlanner::find_multiple_of_devices() const {
  const std::int64_t node = std::min(find_smallest_node(model()), axes_.gpus);
  const auto least = [](const std::vector<std::int32_t>& numbers) -> std::int64_t {
    return numbers.empty() ? 1 : *std::min_element(numbers.begin(), numbers.end());
  };
  const std::int64_t ranks = chooses_ranks_ ? 1 : least(axes_.ranks);
  return std::lcm(node, ranks * least(axes_.tensor) * least(axes_.context));
}

/// The schedules and chunks of one distribution of the model. Schedules that read costs have a
/// different order for every split, so they keep the first one.
std::vector<Configuration> ModelPlanner::shapes_of(const Configuration& parallel) const {
  const ShapeOptions& given = inputs_.flags().shape;
  const Axes axes{
      axes_.schedules,
      {parallel.shape.ranks},
      axes_.chunks.empty() ? chunks_of(model().model, parallel.shape.ranks) : axes_.chunks,
      {parallel.shape.microbatches},
      given.slices,
      given.moe_overlap,
      given.profile};
  std::vector<Configuration> shapes;
  for (const Configuration& shape : combine(axes)) {
    const std::int64_t stages = std::int64_t{shape.shape.ranks} * shape.shape.chunks;
    if (stages > max_stages(model().model)) continue;
    if (shape.shape.ranks == 1 && shape.shape.chunks > 1) continue;  // nothing to interleave
    const bool searched = find_schedule(shape.schedule).reads_costs;
    if (searched && parallel.chooses_modules) continue;  // each set would be a search of its own
    const std::size_t splits = searched ? 1 : axes_.splits.size();
    for (std::size_t split = 0; split < splits; ++split) {
      Configuration& next = shapes.emplace_back(parallel);
      next.schedule = shape.schedule;
      next.shape = shape.shape;
      next.split = axes_.splits[split];
      next.moe_overlap = shape.moe_overlap;
    }
  }
  return shapes;
}

std::int32_t ModelPlanner::expert_split(const Configuration& parallel) const {
  Parallelism spread = model().parallel;
  spread.tensor = parallel.tensor;
  spread.context = parallel.context;
  spread.expert = parallel.expert;
  spread.data = parallel.data;
  return spread.expert_split();
}

std::vector<Configuration> ModelPlanner::with_expert_ranks(
    std::vector<Configuration> configurations) const {
  const bool is_chosen = axes_.expert.empty();
  std::vector<Configuration> all =
      varied(configurations, is_chosen ? expert_ranks(model().model) : axes_.expert,
             [](Configuration& next, auto ranks) { next.expert = ranks; });
  if (axes_.expert_tensor.empty())
    for (Configuration& next : all) next.expert_tensor = expert_split(next);
  else
    all = varied(all, axes_.expert_tensor,
                 [](Configuration& next, auto ranks) { next.expert_tensor = ranks; });
  if (is_chosen)
    std::erase_if(all, [](const Configuration& next) {
      const std::int64_t ranks = std::int64_t{next.tensor} * next.context * next.data;
      return ranks % (std::int64_t{next.expert_tensor} * next.expert) != 0;
    });
  return all;
}

std::vector<Configuration> ModelPlanner::parallelisms() const {
  std::vector<Configuration> all{{}};
  all = varied(all, axes_.tensor, [](Configuration& next, auto ranks) { next.tensor = ranks; });
  all = varied(all, axes_.context, [](Configuration& next, auto ranks) { next.context = ranks; });
  all = varied(all, axes_.ranks, [](Configuration& next, auto ranks) { next.shape.ranks = ranks; });
  all = with_data_ranks(std::move(all), axes_.gpus);
  if (all.empty())
    throw Error(fmt::format("no --tp x --cp x --pp of {} x {} x {} divides {}; change one",
                            fmt::join(axes_.tensor, ","), fmt::join(axes_.context, ","),
                            fmt::join(axes_.ranks, ","), counted(axes_.gpus, "device")));
  const std::set<std::int32_t> data = data_ranks(all);
  all = varied(all, axes_.micro_batch_sizes,
               [](Configuration& next, auto size) { next.micro_batch_size = size; });
  all = with_microbatches(std::move(all), axes_.global_batch);
  if (all.empty())
    throw Error(
        fmt::format("the batch of {} cannot be divided among --dp {} in micro-batches of {}; "
                    "change --global-batch-size, --gpus or --pp",
                    counted(axes_.global_batch, "sample"), fmt::join(data, ","),
                    fmt::join(axes_.micro_batch_sizes, ",")));
  all = with_expert_ranks(std::move(all));
  all = varied(all, axes_.recomputes, [](Configuration& next, const RecomputeChoice& choice) {
    next.recompute = choice.recompute;
    next.chooses_modules = choice.chooses_modules;
    next.recomputed = choice.layers;
  });
  all = varied(all, axes_.send_budgets,
               [](Configuration& next, auto budget) { next.send_budget = budget; });
  return varied(all, axes_.lookaheads,
                [](Configuration& next, const auto& lookahead) { next.lookahead = lookahead; });
}

std::vector<Configuration> ModelPlanner::configurations() const {
  std::vector<Configuration> all;
  for (const Configuration& parallel : parallelisms()) {
    const std::vector<Configuration> shapes = shapes_of(parallel);
    expect_plannable(all.size() + shapes.size());
    all.insert(all.end(), shapes.begin(), shapes.end());
  }
  const auto place_of = [&](const Configuration& next) {
    const Shape& shape = next.shape;
    return std::tuple(place_in(axes_.schedules, next.schedule), shape.ranks, shape.chunks,
                      shape.microbatches, next.send_budget,
                      place_in(axes_.lookaheads, next.lookahead));
  };
  std::stable_sort(all.begin(), all.end(), [&](const auto& left, const auto& right) {
    return place_of(left) < place_of(right);
  });
  return all;
}

ModelOnDevices ModelPlanner::on(const Configuration& configuration) const {
  ModelOnDevices on = model();
  on.rank_gpus = spread_devices(model().rank_gpus, configuration.shape.ranks);
  on.parallel.tensor = configuration.tensor;
  on.parallel.context = configuration.context;
  on.parallel.expert = configuration.expert;
  on.parallel.expert_tensor = configuration.expert_tensor;
  on.parallel.data = configuration.data;
  on.parallel.micro_batch_size = configuration.micro_batch_size;
  on.parallel.recompute = configuration.recompute;
  on.parallel.modules = configuration.modules;
  on.parallel.recomputed = configuration.recomputed;
  on.counts_sends = configuration.send_budget > 0;
  on.counts_gathered = configuration.lookahead.has_value();
  return on;
}

PredictInputs ModelPlanner::inputs_of(const Configuration& configuration) const {
  PredictOptions flags = inputs_.flags();
  flags.shape = shape_of(configuration, std::move(flags.shape));
  flags.shape.sharded = configuration.lookahead.has_value();
  flags.shape.lookahead = configuration.lookahead;
  if (configuration.send_budget > 0) flags.cost.lower.send_budget = configuration.send_budget;
  return PredictInputs(std::move(flags), {.model = on(configuration)});
}

}  // namespace bubblescope::tools
