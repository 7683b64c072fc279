// Turns options into a predicted step.
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
#include "sim/predict/memory_caps.h"
#include "sim/predict/moves.h"
#include "sim/predict/serial_step.h"
#include "tools/flags/field_names.h"
#include "tools/inputs/config.h"
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
std::int32_t microbatches_of(const PredictOptions& options, const std::string& schedule) {
  const std::optional<std::int32_t>& given = options.shape.microbatches;
  const std::size_t listed = std::max(options.model.lengths.size(), options.arrivals.size());
  if (listed > 0 && !given && !options.model.global_batch)
    return static_cast<std::int32_t>(std::min<std::size_t>(listed, kMaxMicrobatches));
  if (!options.model.global_batch) return required(given, schedule, "-m");
  const std::int64_t batch = *options.model.global_batch;
  const Parallelism& parallel = options.model.parallel;
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
void expect_agreement(const Schedule& schedule, const PredictOptions& options,
                      const std::string& path) {
  const ShapeOptions& given = options.shape;
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
  if (options.model.global_batch && microbatches_of(options, path) != microbatches)
    throw Error(
        fmt::format("{} has {} micro-batches, --global-batch-size {} makes {}; leave it out", path,
                    microbatches, *options.model.global_batch, microbatches_of(options, path)));
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

PredictOptions drop_unused_flags(PredictOptions options, const ScheduleDef& def) {
  if (!takes_chunks(def)) options.shape.chunks.reset();
  if (!def.groups_microbatches) options.shape.group_size.reset();
  if (!def.slices_sequences) options.shape.slices.reset();
  if (!def.overlaps_experts) options.shape.moe_overlap = false;
  if (!def.replicates_stages) options.shape.replicas.clear();
  if (!def.limits_in_flight) options.shape.in_flight.reset();
  return options;
}

ScheduleRequest make_request(const ScheduleDef& def, const PredictOptions& options,
                             std::int64_t max_ops) {
  const ShapeOptions& given = options.shape;
  expect_counts(def, {given.chunks, given.slices});
  ScheduleRequest request;
  request.shape.ranks = required(given.ranks, def.name, "--pp");
  request.shape.microbatches = microbatches_of(options, def.name);
  request.shape.chunks =
      given.chunks.value_or(def.implied_chunks.value_or(default_chunks(def, given)));
  if (!given.layout.empty())
    request.shape.chunks = chunks_of_layout(def, given, request.shape.ranks);
  request.shape.slices = given.slices.value_or(default_slices(def, given));
  request.shape = fill_in_implied(def, request.shape);  // before its stages are priced
  expect_size(request.shape, max_ops);
  request.shape.group_size = given.group_size;
  request.profile = given.profile;
  request.cost = options.cost.uniform;
  request.memory = make_uniform_memory(request.shape, choose_memory(options));
  if (def.reads_costs) request = price_stages(std::move(request), def, make_config(options));
  const bool has_pairs = options.model.parts && options.model.parts->pair_order;
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
                                                           const PredictOptions& options,
                                                           CostUse use) {
  if (is_schedule_file(name_or_path)) {
    expect_no_workload(name_or_path);
    traces::ScheduleFile file = traces::read_schedule_file(name_or_path);
    if (file.has_times && use == CostUse::kPriced)
      expect_named_costs(name_or_path, file.schedule, options);
    Schedule schedule = std::move(file.schedule);
    expect_agreement(schedule, options, name_or_path);
    std::variant<ValidSchedule, InvalidSchedule> read = validate_schedule(std::move(schedule));
    auto* const valid = std::get_if<ValidSchedule>(&read);
    if (valid == nullptr) return read;
    Problems problems = validate_message_order(*valid);
    if (problems.empty() && use == CostUse::kPriced) note_uneven_ranks(*valid, options);
    if (problems.empty()) return read;
    if (auto deadlock = find_deadlock(*valid)) problems.push_back(*std::move(deadlock));
    return InvalidSchedule{std::move(*valid).take(), std::move(problems)};
  }
  const ScheduleDef& def = find_schedule(name_or_path);
  note_similar_names(name_or_path);
  note_default_sizes(def, options.shape);
  ScheduleRequest request = make_request(def, options);
  if (refuse_schedule(def, request).empty()) {
    note_larger_bubble(def, request);
    note_short_group(def, request.shape, request.profile);
  }
  const bool any_cap = !options.memory.cap.empty() || !options.memory.cap_bytes.empty();
  if (def.reads_costs && !any_cap && !request.memory.cap_bytes.empty())
    note_device_cap(def, request.memory.cap_bytes);
  if (use == CostUse::kPriced && options.model.model.empty()) note_output_layer(def, options.cost);
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

}  // namespace

namespace {

/// The schedule of one pipeline.
std::variant<ValidSchedule, InvalidSchedule> load_alone(const std::string& name_or_path,
                                                        const PredictOptions& options,
                                                        CostUse use) {
  expect_sharded(options.shape);
  std::variant<ValidSchedule, InvalidSchedule> loaded = read_or_build(name_or_path, options, use);
  Moves moves = choose_moves(options);
  if (is_schedule_file(name_or_path)) moves.takes_turns_of_215 = false;
  if (!moves.any()) return loaded;
  ValidSchedule schedule = valid_or_refused(std::move(loaded));
  if (options.shape.sharded) expect_shardable(schedule, name_or_path);
  return apply_moves(std::move(schedule), moves);
}

/// The pipeline of a replica that has a part of the damaged one's micro-batches, or why there is
/// none.
std::variant<ValidSchedule, std::string> build_left(const std::string& name,
                                                    std::int32_t microbatches,
                                                    PredictOptions options) {
  if (is_schedule_file(name)) return "a schedule file has a fixed number of micro-batches";
  options.shape.microbatches = microbatches;
  options.model.global_batch.reset();
  const ScheduleDef& def = find_schedule(name);
  const ScheduleRequest request = make_request(def, options);
  if (!refuse_schedule(def, request).empty()) return name + " cannot have so many";
  return apply_moves(build_schedule(def, request), choose_moves(options));
}

}  // namespace

std::variant<ValidSchedule, InvalidSchedule> load_schedule(const std::string& name_or_path,
                                                           const PredictOptions& options,
                                                           CostUse use) {
  if (!options.loss) return load_alone(name_or_path, options, use);
  return lose_rank(load_pipeline(name_or_path, options, use), options);
}

ValidSchedule load_pipeline(const std::string& name_or_path, const PredictOptions& options,
                            CostUse use) {
  return valid_or_refused(load_alone(name_or_path, options, use));
}

ValidSchedule lose_rank(const ValidSchedule& pipeline, const PredictOptions& options) {
  return reroute(pipeline, options.loss->lost, make_config(options));
}

LossReport report_loss(const std::string& name_or_path, const ValidSchedule& pipeline,
                       const ValidSchedule& rerouted, const PredictOptions& options) {
  const std::int32_t left =
      count_left_microbatches(pipeline->shape.microbatches, options.loss->lost);
  const auto built = build_left(name_or_path, left, options);
  const auto* const schedule = std::get_if<ValidSchedule>(&built);
  LossReport report = sim::report_loss(
      pipeline, rerouted, schedule == nullptr ? std::nullopt : std::optional(*schedule),
      *options.loss, make_config(options));
  if (schedule == nullptr) report.left_refusal = std::get<std::string>(built);
  return report;
}

ValidSchedule load_valid_schedule(const std::string& name_or_path, const PredictOptions& options,
                                  CostUse use) {
  return valid_or_refused(load_schedule(name_or_path, options, use));
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

Models load_models(const ValidSchedule& schedule, const PredictOptions& options) {
  const Config config = choose_layers(schedule, make_config(options));
  Models models = find_models(schedule, config);
  print_notes(find_cost_notes(schedule, config), schedule, options);
  return models;
}

TimedStep predict(const std::string& name_or_path, const PredictOptions& options) {
  return predict(load_valid_schedule(name_or_path, options), options);
}

namespace {

TimedStep make_timed_step(Prediction made, const LowerOptions& lowering,
                          const PredictOptions& options) {
  TimedStep step{std::move(made.schedule)};
  step.program = std::move(made.program);
  step.models = std::move(made.models);
  step.timing = std::move(made.timing);
  step.timeline = std::move(made.timeline);
  step.report = std::move(made.report);
  step.made = {lowering, costs_text(step.models, options), to_string(options.shape.profile),
               list_conditions(options)};
  return step;
}

/// Says where pairs take longer than their ops one after the other, although they overlap.
void note_slow_pairs(const Prediction& made, const PredictOptions& options) {
  constexpr double kNoticed = 1.005;
  if (!made.models.placed || !made.models.placed->on.parts) return;
  const std::optional<Nanos> serial = find_serial_step(made.schedule, make_config(options));
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

TimedStep predict_by(const Config& config, ValidSchedule schedule, const PredictOptions& options) {
  const LowerOptions lowering = choose_lowering(schedule, options);
  Prediction made = predict_whole(std::move(schedule), lowering, config);
  print_notes(made.notes, made.schedule, options);
  note_slow_pairs(made, options);
  note_same_peak(made.schedule, config.moves);
  return make_timed_step(std::move(made), lowering, options);
}

}  // namespace

TimedStep predict(ValidSchedule schedule, const PredictOptions& options) {
  return predict_by(make_config(options), std::move(schedule), options);
}

TimedStep predict_report(const std::string& name_or_path, const PredictOptions& options,
                         const ChooseRanks& choose_ranks) {
  return predict_report(load_valid_schedule(name_or_path, options), options, choose_ranks);
}

TimedStep predict_report(ValidSchedule schedule, const PredictOptions& options,
                         const ChooseRanks& choose_ranks) {
  const LowerOptions lowering = choose_lowering(schedule, options);
  const Config config = choose_layers(schedule, make_config(options));
  auto repeated = predict_repeated(std::move(schedule), config, choose_ranks);
  auto* const made = std::get_if<Prediction>(&repeated);
  if (made == nullptr)
    return predict_by(config, std::get<ValidSchedule>(std::move(repeated)), options);
  print_notes(made->notes, made->schedule, options);
  note_slow_pairs(*made, options);
  note_same_peak(made->schedule, config.moves);
  TimedStep step = make_timed_step(std::move(*made), lowering, options);
  step.is_excerpt = true;
  return step;
}

TimedStep complete(const TimedStep& excerpt, const PredictOptions& options) {
  const LowerOptions lowering = choose_lowering(excerpt.schedule, options);
  return make_timed_step(predict_whole(excerpt.schedule, lowering, make_config(options)), lowering,
                         options);
}

}  // namespace bubblescope::tools
