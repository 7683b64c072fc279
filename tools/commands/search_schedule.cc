// Sets the search up, and checks its result against the simulator's.
#include "tools/commands/search_schedule.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/ir/error.h"
#include "sim/model/model_step.h"
#include "sim/predict/memory_caps.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/schedule_request.h"
#include "tools/interrupt.h"
#include "tools/print.h"
#include "tools/terminal.h"

namespace bubblescope::tools {

namespace {

schedules::SearchGoal goal_of(const SearchOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Nanos time_limit = options.time_limit.value_or(kTimeLimit);
  // The rest of the time is for writing the result.
  const Clock::time_point end = Clock::now() + std::chrono::nanoseconds(time_limit / 10 * 8);
  schedules::SearchGoal goal;
  goal.placement = options.placement;
  goal.objective = options.objective;
  goal.seed = options.seed;
  goal.effort = options.effort.value_or(static_cast<std::int64_t>(
      static_cast<double>(time_limit) / 1e9 * static_cast<double>(kOpsPerSecond)));
  const bool has_limit = !options.effort;
  goal.stop = [end, has_limit] { return is_interrupted() || (has_limit && Clock::now() >= end); };
  if (isatty(STDERR_FILENO) != 0)
    goal.on_progress = [](const schedules::SearchProgress& progress) {
      draw_progress(fmt::format("\rfound {}, none is below {}  ", to_text(progress.value),
                                to_text(progress.bound)));
    };
  return goal;
}

Schedule place_on(const std::vector<std::int32_t>& rank_of_stage, const Shape& shape) {
  Schedule placed = make_unordered_schedule(shape);
  placed.rank_of_stage = rank_of_stage;
  return placed;
}

/// Returns the memory of stages on these ranks, with caps that also keep within a model's devices.
MemoryModel find_limits(const Schedule& placed, Config config) {
  auto* const model = std::get_if<ModelCosts>(&config.costs);
  if (model == nullptr) return find_memory_before_order(placed, config);
  // A schedule that fits with the smallest gradients is predicted with the largest that fit the
  // devices, whatever the caps.
  if (model->may_shrink_gradients && config.memory.cap_bytes.empty())
    model->on.parallel.shrink_gradients(Gradients::kLean);
  MemoryModel memory = find_memory_before_order(placed, config);
  const std::vector<Bytes> usable = model->on.usable_memories(placed.shape.ranks);
  if (memory.cap_bytes.empty()) memory.cap_bytes = usable;
  for (std::size_t rank = 0; rank < usable.size(); ++rank)
    memory.cap_bytes[rank] = std::min(memory.cap_bytes[rank], usable[rank]);
  return memory;
}

/// Refuses costs by which an instruction takes longer beside others.
void expect_own_times(const Config& config, const Shape& shape) {
  const Models models = find_models(make_unordered_schedule(shape), config);
  if (!models.contention && !models.cluster) return;
  throw Error(
      fmt::format("search times orders by costs that do not depend on what else runs; leave {} out",
                  models.contention ? "'contended' of the cost file"
                                    : "--network, or 'cluster' of the cost file,"));
}

/// `shrunk`: what a model's gradients shrink to because larger ones do not fit; nullopt: they do
/// not.
schedules::FoundSchedule search_as_asked(const SearchOptions& options,
                                         std::optional<Gradients> shrunk) {
  ScheduleDef def;
  def.name = "search";
  def.default_chunks = schedules::default_chunks(options.placement);
  def.slices_sequences = true;  // the search refuses what its placement cannot have
  def.reads_costs = true;
  Config config = options.inputs.config();
  const auto* const table = std::get_if<CostTable>(&config.costs);
  if (table != nullptr && has_lists(*table))
    throw Error(
        options.inputs.flags().cost.file +
        " has lists per micro-batch or slice, but search needs costs that all micro-batches "
        "share; give their means");
  const ScheduleRequest request = make_request(def, options.inputs);
  expect_own_times(config, request.shape);
  schedules::SearchGoal goal = goal_of(options);
  auto* const model = std::get_if<ModelCosts>(&config.costs);
  if (shrunk) model->on.parallel.shrink_gradients(*shrunk);
  if (model != nullptr)
    goal.find_costs = [&](const std::vector<std::int32_t>& rank_of_stage) {
      return find_costs_before_order(place_on(rank_of_stage, request.shape), config);
    };
  if (model != nullptr || !config.memory.cap_bytes.empty())
    goal.find_memory = [&](const std::vector<std::int32_t>& rank_of_stage) {
      return find_limits(place_on(rank_of_stage, request.shape), config);
    };
  const std::vector<std::string> reasons = schedules::refuse_goal(request, goal);
  if (!reasons.empty()) {
    std::string text;
    for (const std::string& reason : reasons) text += (text.empty() ? "" : "; ") + reason;
    throw Error(Fault::kProblem, "there is no such schedule: " + text);
  }
  schedules::FoundSchedule found = schedules::search_schedule(request, goal);
  if (goal.on_progress) draw_progress("\r\x1b[K");
  return found;
}

/// Checks that the simulator's result equals the search's.
void expect_agreement(const schedules::FoundSchedule& found, const TimedStep& step,
                      schedules::Objective objective) {
  const Nanos simulated = objective == schedules::Objective::kSpan       ? step.report.max_span
                          : objective == schedules::Objective::kMakespan ? step.report.makespan
                                                                         : found.value;
  if (simulated != found.value)
    throw Error(Fault::kMachine,
                fmt::format("the search counts {} for its schedule, the simulator {}; this is a "
                            "mistake in the program, please report it with this command line",
                            to_text(found.value), to_text(simulated)));
  const Problems problems = find_ranks_over_cap(collect_peaks(step.report), step.models.memory);
  if (!problems.empty()) throw Error(Fault::kMachine, to_string(problems[0]));
}

}  // namespace

FoundStep search_and_predict(SearchOptions& options) {
  const auto find = [&](std::optional<Gradients> shrunk) {
    schedules::FoundSchedule found = search_as_asked(options, shrunk);
    TimedStep step = predict_timed_step(require_valid(found.schedule), options.inputs);
    return FoundStep{std::move(found), std::move(step)};
  };
  FoundStep found = find({});
  const auto gradients_of = [](const FoundStep& each) {
    return each.step.models.placed->on.parallel.gradients;
  };
  const auto* const model = std::get_if<ModelCosts>(&options.inputs.config().costs);
  if (model != nullptr && model->may_shrink_gradients &&
      gradients_of(found) != model->on.parallel.gradients) {
    const Gradients shrunk = gradients_of(found);
    found = find(shrunk);
    if (gradients_of(found) != shrunk) {
      options.inputs =
          options.inputs.with([&](PredictOptions& flags) { flags.model.gradients = shrunk; });
      found = find({});
    }
  }
  expect_agreement(found.found, found.step, options.objective);
  return found;
}

}  // namespace bubblescope::tools
