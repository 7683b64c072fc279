// From options to a predicted step.
#include "tools/predict.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <variant>

#include "sim/analysis/analyze.h"
#include "sim/analysis/link_use.h"
#include "sim/analysis/sensitivity.h"
#include "sim/analysis/step_times.h"
#include "sim/engine/simulate.h"
#include "sim/engine/simulate_batch.h"
#include "sim/engine/simulate_shared.h"
#include "sim/ir/lower_collectives.h"
#include "sim/ir/recompute.h"
#include "sim/ir/shard_stages.h"
#include "sim/ir/validate.h"
#include "sim/model/uneven_spread.h"
#include "tools/load_order.h"
#include "tools/model_costs.h"
#include "traces/cost_file.h"
#include "traces/drawing.h"
#include "traces/schedule_file.h"

namespace bubblescope {

namespace {

constexpr std::int64_t kMaxOps = 100'000'000;  // about 20 GB

std::int32_t required(const std::optional<std::int32_t>& value, const std::string& schedule,
                      const std::string& flag) {
  if (value) return *value;
  const std::string example = schedule == "search" ? schedule : "simulate " + schedule;
  throw Error(fmt::format("{} needs {}; for example 'bubblescope {} --pp 4 -m 8'", schedule, flag,
                          example));
}

/// -m, or what --global-batch-size makes it.
std::int32_t microbatches_of(const PredictOptions& options, const std::string& schedule) {
  const std::optional<std::int32_t>& given = options.shape.microbatches;
  if (!options.model.global_batch) return required(given, schedule, "-m");
  const std::int64_t batch = *options.model.global_batch;
  const Parallelism& parallel = options.model.parallel;
  const std::int64_t samples = std::int64_t{parallel.data} * parallel.micro_batch_size;
  const std::int64_t microbatches = batch / samples;
  if (batch % samples != 0 || microbatches > std::numeric_limits<std::int32_t>::max())
    throw Error(
        fmt::format("--global-batch-size {} is no multiple of --dp {} times "
                    "--micro-batch-size {}; give {}, or -m",
                    batch, parallel.data, parallel.micro_batch_size,
                    std::max<std::int64_t>(microbatches, 1) * samples));
  if (given && *given != microbatches)
    throw Error(fmt::format("--global-batch-size {} makes {} micro-batches, not {}; leave -m out",
                            batch, microbatches, *given));
  return static_cast<std::int32_t>(microbatches);
}

/// The stages of a layout that each rank has: Megatron's virtual pipeline size.
std::int32_t chunks_of_layout(const ScheduleDef& def, const ShapeOptions& given,
                              std::int32_t ranks) {
  const auto stages = static_cast<std::int32_t>(given.layout.size());
  if (stages % ranks != 0)
    throw Error(
        fmt::format("--layout has {} stages, which {} ranks cannot share evenly; write as "
                    "many | that their number is a multiple",
                    stages, ranks));
  if (given.chunks && *given.chunks != stages / ranks)
    throw Error(fmt::format("--layout has {} stages: that is --vpp {} on {} ranks, not {}", stages,
                            stages / ranks, ranks, *given.chunks));
  if (def.implied_chunks && !def.repeats_chunks && *def.implied_chunks != stages / ranks)
    throw Error(fmt::format(
        "--layout has {} stages, {} for each of {} ranks, but {} always has "
        "{}; write {} stages or choose another schedule",
        stages, stages / ranks, ranks, def.name, *def.implied_chunks, ranks * *def.implied_chunks));
  return stages / ranks;
}

CostModel layout_costs(const Schedule& schedule, const PredictOptions& options) {
  const LayerLayout& layout = options.shape.layout;
  if (layout.size() != static_cast<std::size_t>(schedule.stages_per_pipeline()))
    throw Error(fmt::format("--layout has {} stages, but {} has {}; write one per stage",
                            layout.size(), schedule.name, schedule.stages_per_pipeline()));
  return spread_unevenly(options.cost.uniform, schedule,
                         stage_weights(layout, options.shape.layer_costs));
}

/// What a schedule is given that looks for an order: each message takes what it takes alone.
/// Empty where the flags' times are all there is.
std::optional<CostModel> costs_before_order(const Shape& shape, const PredictOptions& options) {
  const Schedule unordered = unordered_schedule(shape);
  const CostOptions& cost = options.cost;
  if (options.model.given()) return model_step(model_of(options), unordered).costs;
  if (!options.shape.layout.empty()) return layout_costs(unordered, options);
  if (!cost.file.empty()) return costs_before_order(read_cost_file(cost.file), shape);
  if (cost.network) return flag_models(cost.uniform, cost.network, unordered).costs;
  return {};
}

/// A file says its own shape; flags that repeat it must agree.
void expect_agreement(const Schedule& schedule, const PredictOptions& options,
                      const std::string& path) {
  const ShapeOptions& given = options.shape;
  const auto expect = [&](const char* flag, const std::optional<std::int32_t>& asked,
                          std::int32_t is) {
    if (asked && *asked != is)
      throw Error(fmt::format("{} has {} {}, not {}; leave {} out", path, is, flag, *asked, flag));
  };
  expect("--pp", given.ranks, schedule.shape.ranks);
  expect("-m", given.microbatches, schedule.shape.microbatches);
  expect("--vpp", given.chunks, schedule.shape.chunks);
  expect("--slices", given.slices, schedule.shape.slices);
  const std::int32_t microbatches = schedule.shape.microbatches;
  if (options.model.global_batch && microbatches_of(options, path) != microbatches)
    throw Error(
        fmt::format("{} has {} micro-batches, --global-batch-size {} makes {}; leave it out", path,
                    microbatches, *options.model.global_batch, microbatches_of(options, path)));
}

/// A full backward that is not I + W next to split ones would compare apples with pears.
void warn_of_unequal_backwards(const Schedule& schedule, const UniformCost& cost) {
  if (!has_kind(schedule, OpKind::kInputGrad) ||
      cost.full_backward() == cost.input_grad + cost.weight_grad)
    return;
  fmt::print(stderr, "bubblescope: {} splits backwards: they take --i {} and --w {}, not --b {}\n",
             schedule.name, to_text(cost.input_grad), to_text(cost.weight_grad),
             to_text(cost.full_backward()));
}

/// The same step in every scenario of the noise.
StepTimes try_noise(const Step& step, const NoiseOptions& options) {
  const std::vector<Nanos>& durations = step.traffic ? step.traffic->fixed : step.durations;
  const NoiseModel model(step.program, durations, options.noise,
                         price_bytes(step.program, step.models.costs));
  const auto batch = [&](std::size_t block) { return NoisyBatch(model, block); };
  std::function<BatchDurations(std::size_t)> lengths;
  if (options.noise.ragged > 0)
    lengths = [&](std::size_t block) {
      return [batch = NoisyBatch(model, block)](InstructionId id) { return batch.length(id); };
    };
  return summarize(
      step.traffic ? simulate_batches(step.program, *step.traffic, options.seeds, batch, lengths)
                   : simulate_batches(step.program, options.seeds, batch));
}

std::string uniform_text(const UniformCost& cost) {
  const char* per = cost.per == UniformCost::Per::kRank    ? "rank"
                    : cost.per == UniformCost::Per::kChunk ? "chunk"
                                                           : "slice";
  return fmt::format("f {}, b {}, i {}, w {} per {}, p2p {}", to_text(cost.forward),
                     to_text(cost.full_backward()), to_text(cost.input_grad),
                     to_text(cost.weight_grad), per, to_text(cost.message));
}

/// What the durations come from, in words.
std::string costs_text(const Models& models, const PredictOptions& options) {
  const LayerLayout& layout = options.shape.layout;
  std::string text = models.placed               ? in_words(models.placed->on)
                     : options.cost.file.empty() ? uniform_text(options.cost.uniform)
                                                 : options.cost.file;
  if (!layout.empty()) text += ", layout " + to_string(layout);
  if (options.cost.network) text += ", network " + to_string(*options.cost.network);
  return text;
}

[[noreturn]] void refuse(const Schedule& schedule, const Problems& problems) {
  fmt::print(stderr, "{}", draw_grid(schedule, problems));
  throw Error(Fault::kProblem, fmt::format("{} is not legal: {} problem(s), the first: {}",
                                           schedule.name, problems.size(), problems[0].message));
}

}  // namespace

MemoryModel uniform_memory(const Shape& shape, const MemoryOptions& options, UniformCost::Per per) {
  using Per = UniformCost::Per;
  MemoryModel memory;
  memory.release = options.release;
  memory.unit = options.unit;
  memory.kept = options.kept;
  memory.unit_parts =
      (per == Per::kRank ? shape.chunks : 1) * (per == Per::kSlice ? 1 : shape.slices);
  memory.cap = options.cap;
  if (memory.cap.size() == 1)
    memory.cap.resize(static_cast<std::size_t>(shape.ranks), memory.cap[0]);
  if (!memory.cap.empty() && memory.cap.size() != static_cast<std::size_t>(shape.ranks))
    throw Error(fmt::format("--cap has {} entries for {} ranks; give one, or one per rank",
                            memory.cap.size(), shape.ranks));
  return memory;
}

bool is_schedule_file(const std::string& name_or_path) {
  return name_or_path == "-" || name_or_path.find_first_of("./") != std::string::npos;
}

PredictOptions fitted(PredictOptions options, const ScheduleDef& def) {
  if (def.implied_chunks && !def.repeats_chunks) options.shape.chunks.reset();
  if (!def.groups_microbatches) options.shape.group_size.reset();
  if (!def.cuts_sequences) options.shape.slices.reset();
  if (!def.overlaps_experts) options.shape.moe_overlap = false;
  if (!def.replicates_stages) options.shape.replicas.clear();
  if (!def.limits_in_flight) options.shape.in_flight.reset();
  return options;
}

ScheduleRequest request_of(const ScheduleDef& def, const PredictOptions& options) {
  const ShapeOptions& given = options.shape;
  ScheduleRequest request;
  request.shape.ranks = required(given.ranks, def.name, "--pp");
  request.shape.microbatches = microbatches_of(options, def.name);
  request.shape.chunks = given.chunks.value_or(def.implied_chunks.value_or(1));
  if (!given.layout.empty())
    request.shape.chunks = chunks_of_layout(def, given, request.shape.ranks);
  request.shape.slices = given.slices.value_or(1);
  request.shape.group_size = given.group_size;
  request.profile = given.profile;
  request.cost = options.cost.uniform;
  request.memory = uniform_memory(request.shape, options.memory, options.cost.uniform.per);
  if (def.reads_costs) request.stage_costs = costs_before_order(request.shape, options);
  request.moe_overlap = given.moe_overlap;
  request.replicas = given.replicas;
  request.in_flight = given.in_flight;
  const std::int64_t ops = std::int64_t{2} * request.shape.ranks * request.shape.chunks *
                           request.shape.microbatches * request.shape.slices;
  if (ops > kMaxOps)
    throw Error(
        fmt::format("this shape has at least {} ops, the limit is {}; ask for fewer "
                    "micro-batches, ranks or chunks",
                    ops, kMaxOps));
  return request;
}

namespace {

Schedule load(const std::string& name_or_path, const PredictOptions& options, bool is_priced) {
  Schedule schedule;
  if (is_schedule_file(name_or_path)) {
    ScheduleFile file = read_schedule_file(name_or_path);
    if (file.has_times && is_priced) expect_named_costs(name_or_path, options);
    schedule = std::move(file.schedule);
    expect_agreement(schedule, options, name_or_path);
  } else {
    const ScheduleDef& def = find_schedule(name_or_path);
    schedule = build_schedule(def, request_of(def, options));
  }
  const MovesOptions& moves = options.moves;
  // A model's backward has the recomputation in it.
  if (!moves.recompute.empty() && !options.model.given())
    schedule = with_recompute(std::move(schedule), moves.recompute);
  if (moves.offload) schedule = with_offload(std::move(schedule), *moves.offload);
  if (!options.shape.sharded) return schedule;
  if (posts_messages(schedule) || posts_collectives(schedule))
    throw Error(name_or_path + " posts its own messages or collectives; leave --fsdp out");
  return shard_stages(std::move(schedule));
}

}  // namespace

Schedule load_schedule(const std::string& name_or_path, const PredictOptions& options) {
  return load(name_or_path, options, true);
}

Schedule load_order(const std::string& name_or_path, const PredictOptions& options) {
  return load(name_or_path, options, false);
}

/// One source for every time, so that nobody wonders which of two was taken.
void expect_one_cost_source(const PredictOptions& options) {
  const CostOptions& cost = options.cost;
  const bool has_layout = !options.shape.layout.empty();
  const bool has_file = !cost.file.empty();
  constexpr const char* kCostFlags =
      "--f, --i, --w, --b, --r, --copy, --p2p, --optimizer-step, --reduce-grad, --unshard and "
      "--norm";
  if (cost.network && (options.model.given() || has_layout))
    throw Error("--network goes with --f, --i, --w and --p2p; leave it, --model or --layout out");
  if (options.model.given() && (cost.any_uniform || has_file))
    throw Error(fmt::format("--model gives all costs; leave --costs, {} out", kCostFlags));
  if (has_file && has_layout)
    throw Error("--costs has the times of every stage; leave --layout out");
  if (has_file && cost.network)
    throw Error("--costs gives the network too: write it as the file's 'cluster', not --network");
  if (has_file && cost.any_uniform)
    throw Error(fmt::format("--costs gives all costs; leave {} out", kCostFlags));
}

Models load_models(const Schedule& schedule, const PredictOptions& options) {
  expect_one_cost_source(options);
  const CostOptions& cost = options.cost;
  MemoryModel memory = uniform_memory(schedule.shape, options.memory, cost.uniform.per);
  if (options.model.given()) return placed_models(model_of(options), schedule, std::move(memory));
  if (!cost.file.empty())
    return file_models(read_cost_file(cost.file), schedule, std::move(memory));
  Models models;
  if (!options.shape.layout.empty()) {
    models.costs = layout_costs(schedule, options);
  } else {
    warn_of_unequal_backwards(schedule, cost.uniform);
    models = flag_models(cost.uniform, cost.network, schedule);
  }
  models.memory = std::move(memory);
  return models;
}

std::optional<Traffic> find_traffic(const Program& program, const Models& models,
                                    const std::vector<Nanos>& durations) {
  if (!models.cluster && !models.contention) return {};
  Traffic traffic;
  traffic.fixed = durations;
  if (models.cluster) traffic = route_messages(program, durations, *models.cluster);
  if (!models.contention) return traffic;
  return with_company(std::move(traffic), program, *models.contention);
}

Program lower_or_explain(const Schedule& schedule, const LowerOptions& options) {
  Problems problems = validate_ops(schedule);
  if (problems.empty()) problems = validate_collectives(schedule);
  if (problems.empty()) problems = validate_messages(schedule);
  if (!problems.empty()) refuse(schedule, problems);
  std::variant<Program, Deadlock> lowered = lower(schedule, options);
  if (const auto* deadlock = std::get_if<Deadlock>(&lowered)) {
    if (options.mode == P2pMode::kDataflow)
      refuse(schedule, {deadlock_problem(schedule, *deadlock)});
    throw Error(Fault::kProblem,
                fmt::format("deadlock: {} with --p2p-mode {}: {}", schedule.name,
                            to_string(options.mode, options.eager_slots), to_string(*deadlock)));
  }
  return std::get<Program>(std::move(lowered));
}

Step predict(const std::string& name_or_path, const PredictOptions& options) {
  return predict(load_schedule(name_or_path, options), options);
}

Step predict(Schedule schedule, const PredictOptions& options) {
  Step step;
  step.schedule = std::move(schedule);
  step.program = lower_or_explain(step.schedule, lowering_of(step.schedule, options));
  step.models = load_models(step.schedule, options);
  step.durations =
      slow_down(step.program,
                inject(options.injections, step.program, price(step.program, step.models.costs)),
                options.noise.slow_ranks);
  SharedRun run;
  step.traffic = find_traffic(step.program, step.models, step.durations);
  if (step.traffic) {
    run = simulate_shared(step.program, *step.traffic);
    step.timeline = std::move(run.timeline);
    step.timeline.alone = step.durations;
  } else {
    step.timeline = simulate(step.program, step.durations);
  }
  step.report = analyze(step.schedule, step.program, step.timeline, step.models.memory);
  step.made = {lowering_of(step.schedule, options), costs_text(step.models, options),
               to_string(options.shape.profile)};
  if (step.traffic)
    step.report.links = account_for_links(*step.traffic, run.uses, step.report.makespan);
  if (options.noise.noise.is_random()) step.report.noise = try_noise(step, options.noise);
  if (options.noise.sensitivity)
    step.report.sensitivity =
        find_sensitivity(step.program, step.durations, step.traffic ? &*step.traffic : nullptr);
  return step;
}

Problems over_cap(const std::vector<Peak>& peaks, const MemoryModel& memory) {
  Problems problems;
  for (std::size_t rank = 0; rank < memory.cap.size(); ++rank) {
    const double cap = static_cast<double>(memory.cap[rank]) / 1e6;
    const double held = peaks[rank].units;
    if (held > cap * (1 + 1e-9))
      problems.push_back(
          {static_cast<std::int32_t>(rank),
           {},
           fmt::format("rank {} holds {:g} at its peak, over --cap {:g}", rank, held, cap)});
  }
  return problems;
}

std::vector<Peak> peaks_of(const BubbleReport& report) {
  std::vector<Peak> peaks;
  for (const RankReport& rank : report.ranks) peaks.push_back(rank.peak);
  return peaks;
}

}  // namespace bubblescope
