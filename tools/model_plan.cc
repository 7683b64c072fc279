// Devices -> tensor, context, pipeline and data ranks -> micro-batches -> the walk.
#include "tools/model_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/model/model_step.h"
#include "sim/model/stage_loads.h"
#include "tools/model_costs.h"
#include "tools/predict.h"
#include "tools/what_if.h"

namespace bubblescope {

namespace {

/// Larger programs take seconds each: a plan with so many micro-batches has no bubble to speak of.
constexpr std::int64_t kMostOps = 2'000'000;

std::vector<std::int32_t> powers_of_two(std::int64_t most) {
  std::vector<std::int32_t> powers;
  for (std::int64_t power = 1; power <= most; power *= 2)
    powers.push_back(static_cast<std::int32_t>(power));
  return powers;
}

std::string gibibytes(Bytes bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

/// Each configuration once for every value of one axis.
template <class Value, class Set>
std::vector<Configuration> varied(const std::vector<Configuration>& configurations,
                                  const std::vector<Value>& values, Set set) {
  std::vector<Configuration> all;
  for (const Configuration& configuration : configurations)
    for (const Value& value : values) set(all.emplace_back(configuration), value);
  return all;
}

/// The ranks that are not in a pipeline train on other data; what does not come out even is left
/// out.
void add_data_ranks(std::vector<Configuration>& configurations, std::int64_t devices) {
  std::erase_if(configurations, [&](Configuration& next) {
    const std::int64_t pipeline = std::int64_t{next.tensor} * next.context * next.shape.ranks;
    next.data = static_cast<std::int32_t>(devices / pipeline);
    return devices % pipeline != 0;
  });
}

void add_microbatches(std::vector<Configuration>& configurations, std::int64_t batch) {
  std::erase_if(configurations, [&](Configuration& next) {
    const std::int64_t samples = std::int64_t{next.data} * next.micro_batch_size;
    next.shape.microbatches = static_cast<std::int32_t>(batch / samples);
    return batch % samples != 0;
  });
}

/// Ranks that can share the experts: of every model that has some, as many as divide them.
std::vector<std::int32_t> expert_ranks(const Transformer& model) {
  std::vector<std::int32_t> ranks{1};
  if (!model.experts) return ranks;
  for (std::int64_t count = 2; count <= model.experts->count; count *= 2)
    if (model.experts->count % count == 0) ranks.push_back(static_cast<std::int32_t>(count));
  return ranks;
}

}  // namespace

ModelPlanner::ModelPlanner(const PredictOptions& options, ModelAxes axes)
    : options_(options), axes_(std::move(axes)), base_(resolve(options.model)) {
  if (axes_.gpus < 1) throw Error("a plan for a model needs --gpus, such as --gpus 64");
  if (axes_.global_batch < 1)
    throw Error("a plan for a model needs --global-batch-size, such as --global-batch-size 512");
  if (axes_.tensor.empty()) axes_.tensor = powers_of_two(base_.gpu.per_node);
  if (axes_.chunks.empty()) axes_.chunks = powers_of_two(8);
  if (axes_.ranks.empty())
    axes_.ranks = powers_of_two(std::min<std::int64_t>(axes_.gpus, most_stages(base_.model)));
}

/// The schedules and chunks of one way to spread the model.
void ModelPlanner::add_shapes(const Configuration& parallel,
                              std::vector<Configuration>& all) const {
  const Axes axes{
      axes_.schedules, {parallel.shape.ranks}, axes_.chunks, {parallel.shape.microbatches}};
  for (const Configuration& shape : combine(axes)) {
    const std::int64_t stages = std::int64_t{shape.shape.ranks} * shape.shape.chunks;
    if (stages > most_stages(base_.model)) continue;
    if (shape.shape.ranks == 1 && shape.shape.chunks > 1) continue;  // nothing to interleave with
    if (2 * stages * shape.shape.microbatches > kMostOps) continue;
    Configuration& next = all.emplace_back(parallel);
    next.schedule = shape.schedule;
    next.shape = shape.shape;
  }
}

std::vector<Configuration> ModelPlanner::configurations() const {
  std::vector<Configuration> all{{}};
  all = varied(all, axes_.tensor, [](Configuration& next, auto ranks) { next.tensor = ranks; });
  all = varied(all, axes_.context, [](Configuration& next, auto ranks) { next.context = ranks; });
  all = varied(all, axes_.ranks, [](Configuration& next, auto ranks) { next.shape.ranks = ranks; });
  add_data_ranks(all, axes_.gpus);
  all = varied(all, axes_.micro_batch_sizes,
               [](Configuration& next, auto size) { next.micro_batch_size = size; });
  add_microbatches(all, axes_.global_batch);
  if (axes_.expert.empty()) {
    all = varied(all, expert_ranks(base_.model),
                 [](Configuration& next, auto ranks) { next.expert = ranks; });
    std::erase_if(all, [](const Configuration& next) {
      return std::int64_t{next.data} * next.context % next.expert != 0;
    });
  } else {
    all = varied(all, axes_.expert, [](Configuration& next, auto ranks) { next.expert = ranks; });
  }
  all = varied(all, axes_.recomputes,
               [](Configuration& next, auto recompute) { next.recompute = recompute; });
  std::vector<Configuration> shaped;
  for (const Configuration& parallel : all) add_shapes(parallel, shaped);
  return shaped;
}

ModelOnDevices ModelPlanner::on(const Configuration& configuration) const {
  ModelOnDevices on = base_;
  on.parallel.tensor = configuration.tensor;
  on.parallel.context = configuration.context;
  on.parallel.expert = configuration.expert;
  on.parallel.data = configuration.data;
  on.parallel.micro_batch_size = configuration.micro_batch_size;
  on.parallel.recompute = configuration.recompute;
  return on;
}

PredictOptions ModelPlanner::options_of(const Configuration& configuration) const {
  PredictOptions options = options_;
  options.model = {};
  options.shape.ranks = configuration.shape.ranks;
  options.shape.chunks = configuration.shape.chunks;
  options.shape.microbatches = configuration.shape.microbatches;
  return options;
}

Schedule ModelPlanner::build(const Configuration& configuration, const CostModel& costs) const {
  const ScheduleDef& def = find_schedule(configuration.schedule);
  ScheduleRequest request = request_of(def, fitted(options_of(configuration), def));
  if (def.reads_costs) request.stage_costs = costs;
  return build_schedule(def, std::move(request));
}

/// What a model adds to a plan: how well the devices are used.
void ModelPlanner::add_rates(Plan& plan, const ModelOnDevices& here) const {
  const double seconds = static_cast<double>(plan.step) / 1e9;
  const auto samples = static_cast<double>(plan.configuration.samples());
  const std::int64_t sequence = here.parallel.sequence;
  plan.tokens_per_second = samples * static_cast<double>(sequence) / seconds;
  plan.mfu = model_flops_per_sample(here.model, sequence, here.assumptions.causal) * samples /
             (seconds * axes_.gpus * here.gpu.peak_flops);
}

Outcome ModelPlanner::simulate_plan(const Configuration& configuration) const {
  const ModelOnDevices here = on(configuration);
  const ModelStep unordered = model_step(here, configuration.shape);
  if (const Bytes least = least_bytes(unordered); least > here.gpu.memory)
    return {{},
            fmt::format("states and one micro-batch take {} of {}", gibibytes(least),
                        gibibytes(here.gpu.memory))};
  const Schedule schedule = build(configuration, unordered.costs);
  const auto lowered = lower(schedule, lowering_of(schedule, options_));
  const auto* program = std::get_if<Program>(&lowered);
  if (!program) return {{}, "deadlock: " + to_string(std::get<Deadlock>(lowered))};
  const ModelStep step = step_of(here, schedule);
  MemoryModel memory = uniform_memory(schedule.shape, options_.memory);
  set_bytes(memory, step);
  const BubbleReport report =
      analyze_briefly(schedule, *program, simulate(*program, step.costs), memory);
  Outcome outcome{summarize(configuration, report), {}};
  add_rates(*outcome.plan, here);
  const Problems over = over_cap(peaks_of(report), memory);
  if (!over.empty()) outcome.refusal = over[0].message;
  const Bytes peak = outcome.plan->peak_bytes.value_or(0);
  if (peak > here.gpu.memory)
    outcome.refusal =
        fmt::format("the fullest rank needs {} of {}", gibibytes(peak), gibibytes(here.gpu.memory));
  return outcome;
}

Outcome ModelPlanner::evaluate(const Configuration& configuration) const {
  try {
    return simulate_plan(configuration);
  } catch (const Error& error) {
    if (error.fault() == Fault::kMachine) throw;
    return {{}, error.what()};
  }
}

}  // namespace bubblescope
