// Turns inputs into a predicted step.
#include "tools/inputs/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>

#include "sim/ir/lower_collectives.h"
#include "sim/ir/size_limits.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_refusal.h"
#include "sim/predict/choose_layers.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/memory_caps.h"
#include "sim/predict/moves.h"
#include "sim/predict/serial_step.h"
#include "tools/flags/field_names.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/named_costs.h"
#include "tools/inputs/notes.h"
#include "tools/inputs/predict_report.h"
#include "tools/inputs/schedule_notes.h"
#include "tools/inputs/searched_stages.h"
#include "tools/print.h"
#include "traces/drawings/drawing.h"
#include "traces/timelines/schedule_file.h"
#include "traces/workloads/workload.h"

namespace bubblescope::tools {

namespace {

std::int32_t required(const std::optional<std::int32_t>& value, const std::string& schedule,
                      const std::string& flag) {
  if (value) return *value;
  const std::string example = schedule == "search" ? schedule : "simulate " + schedule;
  throw Error(fmt::format("{} needs {}; for example 'bubblescope {} --pp 4 -m 8'", schedule, flag,
                          example));
}

/// Returns -m, or the number that follows from --global-batch-size.
std::int32_t microbatches_of(const PredictInputs& inputs, const std::string& schedule) {
  const std::optional<std::int32_t>& given = inputs.flags().shape.microbatches;
  const ModelOptions& model = inputs.flags().model;
  const std::optional<ModelOnDevices>& on = inputs.files().model;
  const std::size_t listed =
      std::max(on ? on->sequence_lengths.size() : 0, inputs.files().arrivals.size());
  if (listed > 0 && !given && !model.global_batch)
    return static_cast<std::int32_t>(std::min<std::size_t>(listed, kMaxMicrobatches));
  if (!model.global_batch) return required(given, schedule, "-m");
  const std::int64_t batch = *model.global_batch;
  const Parallelism& parallel = model.parallel;
  const std::int64_t samples = std::int64_t{parallel.data} * parallel.micro_batch_size;
  const std::int64_t microbatches = batch / samples;
  if (microbatches > kMaxMicrobatches)
    throw Error(
        fmt::format("--global-batch-size {} makes {} micro-batches of {} sample(s), the "
                    "limit is {}; give at most {}",
                    batch, microbatches, samples, kMaxMicrobatches, kMaxMicrobatches * samples));
  if (batch % samples != 0)
    throw Error(
        fmt::format("--global-batch-size {} is not a multiple of --dp {} times "
                    "--micro-batch-size {}; give {}, or -m",
                    batch, parallel.data, parallel.micro_batch_size,
                    std::max<std::int64_t>(microbatches, 1) * samples));
  if (given && *given != microbatches)
    throw Error(fmt::format("--global-batch-size {} makes {} micro-batches, not {}; leave -m out",
                            batch, microbatches, *given));
  return static_cast<std::int32_t>(microbatches);
}

/// The layout's stages per rank: Megatron's virtual pipeline size.
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

/// Throws Error if a flag disagrees with the shape that the schedule's file states.
void expect_agreement(const Schedule& schedule, const PredictInputs& inputs,
                      const std::string& path) {
  const ShapeOptions& given = inputs.flags().shape;
  const std::optional<std::int64_t>& batch = inputs.flags().model.global_batch;
  const auto expect = [&](const char* flag, const std::optional<std::int32_t>& asked,
                          std::int32_t is) {
    if (asked && *asked != is)
      throw Error(
          fmt::format("{} has {} {}, not {}; give {} {}", path, flag, is, *asked, flag, is));
  };
  expect("--pp", given.ranks, schedule.shape.ranks);
  expect("-m", given.microbatches, schedule.shape.microbatches);
  expect("--vpp", given.chunks, schedule.shape.chunks);
  expect("--slices", given.slices, schedule.shape.slices);
  const std::int32_t microbatches = schedule.shape.microbatches;
  if (batch && microbatches_of(inputs, path) != microbatches)
    throw Error(
        fmt::format("{} has {} micro-batches, --global-batch-size {} makes {}; leave it out", path,
                    microbatches, *batch, microbatches_of(inputs, path)));
}

[[noreturn]] void refuse(const Schedule& schedule, const Problems& problems) {
  print_message_drawing(traces::draw_grid(schedule, name_flags(problems)));
  throw Error(Fault::kProblem, fmt::format("{} is not legal: {} problem(s), the first: {}",
                                           schedule.name, problems.size(), problems[0].message));
}

}  // namespace

bool is_schedule_file(const std::string& name_or_path) {
  if (name_or_path == "-" || name_or_path.find_first_of("./") != std::string::npos) return true;
  std::error_code unreadable;
  return Registry<ScheduleDef>::instance().find(name_or_path) == nullptr &&
         std::filesystem::is_regular_file(name_or_path, unreadable);
}

ShapeOptions drop_unused_flags(ShapeOptions shape, const ScheduleDef& def) {
  if (!takes_chunks(def)) shape.chunks.reset();
  if (!def.groups_microbatches) shape.group_size.reset();
  if (!def.slices_sequences) shape.slices.reset();
  if (!def.overlaps_experts) shape.moe_overlap = false;
  if (!def.replicates_stages) shape.replicas.clear();
  if (!def.limits_in_flight) shape.in_flight.reset();
  return shape;
}

ScheduleRequest make_request(const ScheduleDef& def, const PredictInputs& inputs,
                             std::int64_t max_ops) {
  const ShapeOptions& given = inputs.flags().shape;
  expect_counts(def, {given.chunks, given.slices});
  ScheduleRequest request;
  request.shape.ranks = required(given.ranks, def.name, "--pp");
  request.shape.microbatches = microbatches_of(inputs, def.name);
  request.shape.chunks =
      given.chunks.value_or(def.implied_chunks.value_or(default_chunks(def, given)));
  if (!given.layout.empty())
    request.shape.chunks = chunks_of_layout(def, given, request.shape.ranks);
  request.shape.slices = given.slices.value_or(default_slices(def, given));
  request.shape = fill_in_implied(def, request.shape);  // before its stages are priced
  expect_size(request.shape, max_ops);
  request.shape.group_size = given.group_size;
  request.profile = given.profile;
  request.cost = inputs.flags().cost.uniform;
  request.memory = make_uniform_memory(request.shape, inputs.config().memory);
  if (def.reads_costs) request = price_stages(std::move(request), def, inputs.config());
  const std::optional<ModelOnDevices>& on = inputs.files().model;
  const bool has_pairs = on && on->parts && on->parts->pair_order;
  if (given.moe_overlap) request.moe_overlap = has_pairs ? MoeOverlap::kPairs : MoeOverlap::kTurns;
  request.replicas = given.replicas;
  request.in_flight = given.in_flight;
  return request;
}

namespace {

void expect_no_workload(const std::string& path) {
  if (traces::is_goal_file(path) || traces::is_chakra_name(path))
    throw Error(path +
                " is a workload of a simulator, with times and without a schedule; 'bubblescope "
                "check' reads it");
}

std::variant<ValidSchedule, InvalidSchedule> read_or_build(const std::string& name_or_path,
                                                           const PredictInputs& inputs,
                                                           CostUse use) {
  const PredictOptions& flags = inputs.flags();
  if (is_schedule_file(name_or_path)) {
    expect_no_workload(name_or_path);
    traces::ScheduleFile file = traces::read_schedule_file(name_or_path);
    if (file.has_times && use == CostUse::kPriced)
      expect_named_costs(name_or_path, file.schedule, flags);
    Schedule schedule = std::move(file.schedule);
    expect_agreement(schedule, inputs, name_or_path);
    std::variant<ValidSchedule, InvalidSchedule> read = validate_schedule(std::move(schedule));
    auto* const valid = std::get_if<ValidSchedule>(&read);
    if (valid == nullptr) return read;
    Problems problems = validate_message_order(*valid);
    if (problems.empty() && use == CostUse::kPriced) note_uneven_ranks(*valid, flags);
    if (problems.empty()) return read;
    if (auto deadlock = find_deadlock(*valid)) problems.push_back(*std::move(deadlock));
    return InvalidSchedule{std::move(*valid).take(), std::move(problems)};
  }
  const ScheduleDef& def = find_schedule(name_or_path);
  note_similar_names(name_or_path);
  note_default_sizes(def, flags.shape);
  ScheduleRequest request = make_request(def, inputs);
  if (refuse_schedule(def, request).empty()) {
    note_larger_bubble(def, request);
    note_short_group(def, request.shape, request.profile);
  }
  const bool any_cap = !flags.memory.cap.empty() || !flags.memory.cap_bytes.empty();
  if (def.reads_costs && !any_cap && !request.memory.cap_bytes.empty())
    note_device_cap(def, request.memory.cap_bytes);
  if (use == CostUse::kPriced && !flags.model.given()) note_output_layer(def, flags.cost);
  return build_schedule(def, std::move(request));
}

void expect_shardable(const Schedule& schedule, const std::string& name_or_path) {
  if (posts_messages(schedule) || posts_collectives(schedule))
    throw Error(name_or_path + " posts its own messages or collectives; leave --fsdp out");
}

void expect_sharded(const ShapeOptions& shape) {
  if (shape.lookahead && !shape.sharded)
    throw Error("--unshard-lookahead says how far ahead --fsdp gathers stages; add --fsdp");
}

ValidSchedule valid_or_refused(std::variant<ValidSchedule, InvalidSchedule> validated) {
  if (const auto* invalid = std::get_if<InvalidSchedule>(&validated))
    refuse(invalid->schedule, invalid->problems);
  return std::get<ValidSchedule>(std::move(validated));
}

/// The schedule of one pipeline.
std::variant<ValidSchedule, InvalidSchedule> load_alone(const std::string& name_or_path,
                                                        const PredictInputs& inputs, CostUse use) {
  expect_sharded(inputs.flags().shape);
  std::variant<ValidSchedule, InvalidSchedule> loaded = read_or_build(name_or_path, inputs, use);
  Moves moves = inputs.config().moves;
  if (is_schedule_file(name_or_path)) moves.takes_turns_of_215 = false;
  if (!moves.any()) return loaded;
  ValidSchedule schedule = valid_or_refused(std::move(loaded));
  if (inputs.flags().shape.sharded) expect_shardable(schedule, name_or_path);
  return apply_moves(std::move(schedule), moves);
}

/// The pipeline of a replica that has a part of the damaged one's micro-batches, or why there is
/// none.
std::variant<ValidSchedule, std::string> build_left(const std::string& name,
                                                    std::int32_t microbatches,
                                                    const PredictInputs& inputs) {
  if (is_schedule_file(name)) return "a schedule file has a fixed number of micro-batches";
  const PredictInputs own = inputs.with([&](PredictOptions& flags) {
    flags.shape.microbatches = microbatches;
    flags.model.global_batch.reset();
  });
  const ScheduleDef& def = find_schedule(name);
  const ScheduleRequest request = make_request(def, own);
  if (!refuse_schedule(def, request).empty()) return name + " cannot have so many";
  return apply_moves(build_schedule(def, request), inputs.config().moves);
}

}  // namespace

std::variant<ValidSchedule, InvalidSchedule> load_schedule(const std::string& name_or_path,
                                                           const PredictInputs& inputs,
                                                           CostUse use) {
  if (!inputs.flags().loss) return load_alone(name_or_path, inputs, use);
  return lose_rank(load_pipeline(name_or_path, inputs, use), inputs);
}

ValidSchedule load_pipeline(const std::string& name_or_path, const PredictInputs& inputs,
                            CostUse use) {
  return valid_or_refused(load_alone(name_or_path, inputs, use));
}

ValidSchedule lose_rank(const ValidSchedule& pipeline, const PredictInputs& inputs) {
  return reroute(pipeline, inputs.flags().loss->lost, inputs.config());
}

LossReport report_loss(const std::string& name_or_path, const ValidSchedule& pipeline,
                       const ValidSchedule& rerouted, const PredictInputs& inputs) {
  const RankLoss& loss = *inputs.flags().loss;
  const std::int32_t left = count_left_microbatches(pipeline->shape.microbatches, loss.lost);
  const auto built = build_left(name_or_path, left, inputs);
  const auto* const schedule = std::get_if<ValidSchedule>(&built);
  LossReport report = sim::report_loss(
      pipeline, rerouted, schedule == nullptr ? std::nullopt : std::optional(*schedule), loss,
      inputs.config());
  if (schedule == nullptr) report.left_refusal = std::get<std::string>(built);
  return report;
}

ValidSchedule load_valid_schedule(const std::string& name_or_path, const PredictInputs& inputs,
                                  CostUse use) {
  return valid_or_refused(load_schedule(name_or_path, inputs, use));
}

Program lower_or_explain(const ValidSchedule& schedule, const LowerOptions& options) {
  std::variant<Program, Deadlock> lowered = lower(schedule, options);
  if (const auto* deadlock = std::get_if<Deadlock>(&lowered)) {
    if (options.mode == P2pMode::kDataflow)
      refuse(schedule, {make_deadlock_problem(schedule, *deadlock)});
    throw Error(Fault::kProblem,
                fmt::format("deadlock: {} with --p2p-mode {}: {}", schedule->name,
                            to_string(options.mode, options.eager_slots), to_string(*deadlock)));
  }
  return std::get<Program>(std::move(lowered));
}

Models load_models(const ValidSchedule& schedule, const PredictInputs& inputs) {
  const Config config = choose_layers(schedule, inputs.config());
  Models models = find_models(schedule, config);
  print_notes(find_cost_notes(schedule, config), schedule, inputs);
  return models;
}

TimedStep predict(const std::string& name_or_path, const PredictInputs& inputs) {
  return predict(load_valid_schedule(name_or_path, inputs), inputs);
}

namespace {

TimedStep make_timed_step(Prediction made, const LowerOptions& lowering,
                          const PredictOptions& flags) {
  TimedStep step{std::move(made.schedule)};
  step.program = std::move(made.program);
  step.models = std::move(made.models);
  step.timing = std::move(made.timing);
  step.timeline = std::move(made.timeline);
  step.report = std::move(made.report);
  step.made = {lowering, costs_text(step.models, flags), to_string(flags.shape.profile),
               list_conditions(flags)};
  return step;
}

/// Says where pairs take longer than their ops one after the other, although they overlap. The
/// Config is the given one, not that with the layers of this step: the serial one has its own.
void note_slow_pairs(const Prediction& made, const Config& config) {
  constexpr double kNoticed = 1.005;
  if (!made.models.placed || !made.models.placed->on.parts) return;
  const std::optional<Nanos> serial = find_serial_step(made.schedule, config);
  if (!serial ||
      static_cast<double>(made.report.makespan) < kNoticed * static_cast<double>(*serial))
    return;
  print_message(
      "bubblescope: {} takes {} with pairs whose parts interleave, and {} with one op of a pair "
      "after the other (--overlap serial)\n",
      made.schedule->name, to_text(made.report.makespan), to_text(*serial));
}

/// Predicts every op of a step.
Prediction predict_whole(ValidSchedule schedule, const LowerOptions& lowering,
                         const Config& config) {
  Program program = lower_or_explain(schedule, lowering);
  return sim::predict(std::move(schedule), std::move(program), config);
}

TimedStep predict_by(const Config& config, ValidSchedule schedule, const PredictInputs& inputs) {
  const LowerOptions lowering = choose_lowering(schedule, config);
  Prediction made = predict_whole(std::move(schedule), lowering, config);
  print_notes(made.notes, made.schedule, inputs);
  note_slow_pairs(made, inputs.config());
  note_same_peak(made.schedule, config.moves);
  return make_timed_step(std::move(made), lowering, inputs.flags());
}

}  // namespace

TimedStep predict(ValidSchedule schedule, const PredictInputs& inputs) {
  return predict_by(inputs.config(), std::move(schedule), inputs);
}

TimedStep predict_report(const std::string& name_or_path, const PredictInputs& inputs,
                         const ChooseRanks& choose_ranks) {
  return predict_report(load_valid_schedule(name_or_path, inputs), inputs, choose_ranks);
}

TimedStep predict_report(ValidSchedule schedule, const PredictInputs& inputs,
                         const ChooseRanks& choose_ranks) {
  const Config config = choose_layers(schedule, inputs.config());
  const LowerOptions lowering = choose_lowering(schedule, config);
  auto repeated = predict_repeated(std::move(schedule), config, choose_ranks);
  auto* const made = std::get_if<Prediction>(&repeated);
  if (made == nullptr)
    return predict_by(config, std::get<ValidSchedule>(std::move(repeated)), inputs);
  print_notes(made->notes, made->schedule, inputs);
  note_slow_pairs(*made, inputs.config());
  note_same_peak(made->schedule, config.moves);
  TimedStep step = make_timed_step(std::move(*made), lowering, inputs.flags());
  step.is_excerpt = true;
  return step;
}

TimedStep complete(const TimedStep& excerpt, const PredictInputs& inputs) {
  const LowerOptions lowering = choose_lowering(excerpt.schedule, inputs.config());
  return make_timed_step(predict_whole(excerpt.schedule, lowering, inputs.config()), lowering,
                         inputs.flags());
}

}  // namespace bubblescope::tools
