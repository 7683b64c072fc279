// Reads or builds schedules, and refuses those that are not legal.
#include "tools/inputs/load_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/lower_collectives.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "sim/model/schedule_refusal.h"
#include "sim/predict/moves.h"
#include "tools/flags/field_names.h"
#include "tools/inputs/lost_rank.h"
#include "tools/inputs/named_costs.h"
#include "tools/inputs/schedule_notes.h"
#include "tools/inputs/schedule_request.h"
#include "tools/print.h"
#include "traces/drawings/drawing.h"
#include "traces/timelines/schedule_file.h"
#include "traces/workloads/workload.h"

namespace bubblescope::tools {

namespace {

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
    throw Error(fmt::format("{} has {}, --global-batch-size {} makes {}; leave it out", path,
                            counted(microbatches, "micro-batch"), *batch,
                            microbatches_of(inputs, path)));
}

[[noreturn]] void refuse(const Schedule& schedule, const Problems& problems) {
  print_message_drawing(traces::draw_grid(schedule, name_flags(problems)));
  throw Error(Fault::kProblem,
              fmt::format("{} is not legal: {}, the first: {}", schedule.name,
                          counted(std::ssize(problems), "problem"), to_string(problems[0])));
}

/// Whether neither flags nor files of the flags say how many micro-batches there are.
bool leaves_microbatches_open(const PredictOptions& options) {
  return !options.shape.microbatches && !options.model.global_batch &&
         options.model.lengths_file.empty() && options.arrivals_file.empty();
}

void expect_no_workload(const std::string& path) {
  if (traces::is_goal_file(path) || traces::is_chakra_name(path))
    throw Error(path +
                " is a workload of a simulator, with times and without a schedule; 'bubblescope "
                "check' reads it");
}

std::variant<ValidSchedule, InvalidSchedule> read_schedule(const std::string& path,
                                                           const PredictInputs& inputs,
                                                           CostUse use) {
  expect_no_workload(path);
  traces::ScheduleFile file = traces::read_schedule_file(path);
  if (file.has_times && use == CostUse::kPriced)
    expect_named_costs(path, file.schedule, inputs.flags());
  expect_agreement(file.schedule, inputs, path);
  std::variant<ValidSchedule, InvalidSchedule> read = validate_schedule(std::move(file.schedule));
  auto* const valid = std::get_if<ValidSchedule>(&read);
  if (valid == nullptr) return read;
  Problems problems = validate_message_order(*valid);
  if (problems.empty() && use == CostUse::kPriced) note_uneven_ranks(*valid, inputs.flags());
  if (problems.empty()) return read;
  if (auto deadlock = find_deadlock(*valid)) problems.push_back(*std::move(deadlock));
  return InvalidSchedule{std::move(*valid).take(), std::move(problems)};
}

ValidSchedule build_named(const std::string& name, const PredictInputs& inputs, CostUse use) {
  const PredictOptions& flags = inputs.flags();
  const ScheduleDef& def = find_schedule(name);
  note_similar_names(name);
  note_default_sizes(def, flags.shape);
  ScheduleRequest request = make_request(def, inputs);
  if (refuse_schedule(def, request).empty()) {
    note_larger_bubble(def, request);
    note_short_group(def, request);
  }
  note_device_cap(def, request, flags.memory);
  if (use == CostUse::kPriced) note_output_layer(def, flags);
  return build_schedule(def, std::move(request));
}

std::variant<ValidSchedule, InvalidSchedule> read_or_build(const std::string& name_or_path,
                                                           const PredictInputs& inputs,
                                                           CostUse use) {
  if (is_schedule_file(name_or_path)) return read_schedule(name_or_path, inputs, use);
  return build_named(name_or_path, inputs, use);
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

/// Returns the schedule of one pipeline.
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

}  // namespace

bool is_schedule_file(const std::string& name_or_path) {
  if (name_or_path == "-" || name_or_path.find_first_of("./") != std::string::npos) return true;
  std::error_code unreadable;
  return Registry<ScheduleDef>::instance().find(name_or_path) == nullptr &&
         std::filesystem::exists(name_or_path, unreadable) &&
         !std::filesystem::is_directory(name_or_path, unreadable);
}

bool has_open_sizes(const PredictOptions& options) {
  return !options.shape.ranks || leaves_microbatches_open(options);
}

ShapeOptions take_stated_sizes(const PredictOptions& options,
                               const std::vector<StatedSizes>& stated) {
  ShapeOptions shape = options.shape;
  const auto take = [&](const char* flag, std::optional<std::int32_t>& open,
                        std::int32_t StatedSizes::*size) {
    open = stated.front().*size;
    for (const StatedSizes& other : stated)
      if (other.*size != *open)
        throw Error(
            fmt::format("{} has {} {} and {} has {} {}, so that schedules built by name have no "
                        "one shape; compare them with files of one shape",
                        stated.front().name, flag, *open, other.name, flag, other.*size));
  };
  if (stated.empty()) return shape;
  if (!shape.ranks) take("--pp", shape.ranks, &StatedSizes::ranks);
  if (leaves_microbatches_open(options)) take("-m", shape.microbatches, &StatedSizes::microbatches);
  return shape;
}

std::vector<StatedSizes> read_stated_sizes(const std::vector<std::string>& names) {
  std::vector<StatedSizes> stated;
  std::optional<Error> unreadable;
  for (const std::string& name : names) {
    if (!is_schedule_file(name) || name == "-") continue;  // stdin can be read once
    try {
      expect_no_workload(name);
      const Shape shape = traces::read_schedule_file(name).schedule.shape;
      stated.push_back({name, shape.ranks, shape.microbatches});
    } catch (const Error& error) {
      if (!unreadable) unreadable = error;
    }
  }
  if (stated.empty() && unreadable) throw *unreadable;
  return stated;
}

ShapeOptions complete_shape(const std::vector<std::string>& names, const PredictOptions& options) {
  if (!has_open_sizes(options) || std::all_of(names.begin(), names.end(), is_schedule_file))
    return options.shape;
  const std::vector<StatedSizes> stated = read_stated_sizes(names);
  if (stated.empty()) return options.shape;
  const ShapeOptions shape = take_stated_sizes(options, stated);
  std::string taken;
  if (!options.shape.ranks) taken += fmt::format(" --pp {}", *shape.ranks);
  if (!options.shape.microbatches && shape.microbatches)
    taken += fmt::format(" -m {}", *shape.microbatches);
  print_message("bubblescope: schedules that are built by name have{}, as {} states\n", taken,
                stated.front().name);
  return shape;
}

ShapeOptions leave_to_names(ShapeOptions shape, const std::vector<std::string>& names) {
  if (std::all_of(names.begin(), names.end(), is_schedule_file)) return shape;
  shape.chunks.reset();
  shape.slices.reset();
  return shape;
}

std::variant<ValidSchedule, InvalidSchedule> load_schedule(const std::string& name_or_path,
                                                           const PredictInputs& inputs,
                                                           CostUse use) {
  if (!inputs.flags().loss) return load_alone(name_or_path, inputs, use);
  return reroute_pipeline(load_pipeline(name_or_path, inputs, use), inputs);
}

ValidSchedule load_pipeline(const std::string& name_or_path, const PredictInputs& inputs,
                            CostUse use) {
  return valid_or_refused(load_alone(name_or_path, inputs, use));
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

}  // namespace bubblescope::tools
