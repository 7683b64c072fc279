// Evaluates one configuration: inputs -> Schedule -> Program -> Timeline -> BubbleReport -> Plan.
#include "tools/plan/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "sim/ir/counted.h"
#include "sim/ir/saturated.h"
#include "sim/ir/size_limits.h"
#include "sim/model/full_groups.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/memory_caps.h"
#include "sim/predict/predict.h"
#include "sim/predict/predict_plain.h"
#include "tools/flags/field_names.h"
#include "tools/flags/words.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/schedule_notes.h"
#include "tools/inputs/schedule_request.h"
#include "tools/inputs/searched_stages.h"

namespace bubblescope::tools {

namespace {

Schedule build_plan(const Configuration& configuration, const PredictInputs& inputs) {
  const ScheduleDef& def = find_schedule(configuration.schedule);
  return build_order(def, make_request(def, inputs, kMaxPlannedOps));
}

/// Divides a time among ranks, rounded to the nearest nanosecond.
Nanos share_of(Nanos whole, std::int32_t ranks) { return (whole + ranks / 2) / ranks; }

/// Whether a schedule is part of the sweep. A schedule that slices sequences equals another one if
/// there is only one slice.
bool is_planned(const ScheduleDef& def, bool searched, bool sliced) {
  return def.trains && def.flushes && !def.splits_output_layer && def.reads_costs == searched &&
         (sliced || !def.slices_sequences);
}

/// The chunks to try for a schedule. Numbers of chunks or slices for which it equals another
/// schedule are left out.
std::vector<std::int32_t> chunks_for(const ScheduleDef& def, const Axes& axes) {
  if (def.default_slices > 1 && axes.slices && *axes.slices < def.default_slices) return {};
  if (!def.implied_chunks) {
    if (axes.chunks.empty()) return {def.default_chunks};
    std::vector<std::int32_t> chunks = axes.chunks;
    std::erase_if(chunks, [&](std::int32_t count) { return count < def.default_chunks; });
    return chunks;
  }
  if (!def.repeats_chunks) return {*def.implied_chunks};
  std::vector<std::int32_t> chunks;
  for (const std::int32_t count : axes.chunks)
    if (count % *def.implied_chunks == 0) chunks.push_back(count);
  return chunks.empty() ? std::vector<std::int32_t>{*def.implied_chunks} : chunks;
}

}  // namespace

void expect_plannable(std::size_t configurations) {
  if (configurations > kMaxConfigurations)
    throw Error(fmt::format("{} are too many, the limit is {}; vary less",
                            counted(configurations, "configuration"), kMaxConfigurations));
}

ShapeOptions shape_of(const Configuration& configuration, ShapeOptions shape) {
  shape.ranks = configuration.shape.ranks;
  shape.chunks = configuration.shape.chunks;
  shape.microbatches = configuration.shape.microbatches;
  shape.group_size = configuration.shape.group_size;
  return drop_unused_flags(std::move(shape), find_schedule(configuration.schedule));
}

std::size_t count_configurations(const Axes& axes) {
  std::size_t count = 0;
  for (const std::string& schedule : axes.schedules)
    count += axes.ranks.size() * chunks_for(find_schedule(schedule), axes).size() *
             axes.microbatches.size();
  return count;
}

std::vector<Configuration> combine(const Axes& axes) {
  expect_plannable(count_configurations(axes));
  std::vector<Configuration> configurations;
  for (const std::string& schedule : axes.schedules) {
    const ScheduleDef& def = find_schedule(schedule);
    const std::vector<std::int32_t> chunks = chunks_for(def, axes);
    for (const std::int32_t ranks : axes.ranks)
      for (const std::int32_t count : chunks)
        for (const std::int32_t microbatches : axes.microbatches) {
          Configuration& next = configurations.emplace_back();
          next.schedule = schedule;
          next.shape.ranks = ranks;
          next.shape.chunks = count;
          next.shape.microbatches = microbatches;
          next.shape.group_size = find_full_groups(def, next.shape, axes.profile);
          next.moe_overlap = axes.moe_overlap && def.overlaps_experts;
        }
  }
  return configurations;
}

bool names_a_group(std::string_view word) {
  return word == "auto" || word == "all" || word == "searched" || word == "vocab";
}

bool lists_schedule_group(const std::string& list, std::string_view group) {
  const std::vector<std::string> words = split(list, ',');
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return normalize_name(trim(word)) == group; });
}

std::vector<std::string> expand_schedules(const std::string& list, bool sliced, bool has_model) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const std::string& word : split(list, ',')) {
    const std::string name = normalize_name(trim(word));
    if (name.empty()) continue;
    if (!names_a_group(name)) {
      note_similar_names(word);
      const ScheduleDef& found = find_schedule(word);
      if (!found.trains)
        throw Error(found.name +
                    " has no backwards, and plans rank steps that train; leave it out");
      if (found.splits_output_layer && !has_model)
        throw Error(found.name +
                    " splits the output layer, which plan prices with --model alone; try it with "
                    "'compare --output-layer'");
      add(found.name);
      continue;
    }
    if (name == "vocab" && !has_model)
      throw Error("--schedules vocab splits a model's output layer; give --model");
    for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
      if (name == "vocab" ? def.splits_output_layer : is_planned(def, name == "searched", sliced))
        add(def.name);
  }
  if (names.empty()) throw Error("--schedules needs names, such as 1f1b,zb-h1, or 'all'");
  return names;
}

WhatIf::WhatIf(PredictInputs inputs, bool whole_model)
    : inputs_(std::move(inputs)), whole_model_(whole_model) {
  const auto* const table = std::get_if<CostTable>(&inputs_.config().costs);
  const auto has_bytes = [](const auto& stage) { return stage.activation_bytes.has_value(); };
  check_cap_unit(
      inputs_.config().memory,
      table != nullptr && std::any_of(table->stages.begin(), table->stages.end(), has_bytes));
}

UniformCost WhatIf::cost_of(const Configuration& configuration) const {
  return share_of_rank(flags(), configuration);
}

UniformCost WhatIf::share_of_rank(UniformCost cost, const Configuration& configuration) const {
  if (!whole_model_) return cost;
  CostOptions whole = inputs_.flags().cost;
  whole.uniform = cost;
  return divide_among_ranks(std::move(whole), configuration.shape.ranks);
}

UniformCost divide_among_ranks(CostOptions whole, std::int32_t ranks) {
  UniformCost& cost = whole.uniform;
  cost.forward = share_of(cost.forward, ranks);
  cost.input_grad = share_of(cost.input_grad, ranks);
  cost.weight_grad = share_of(cost.weight_grad, ranks);
  if (cost.backward) cost.backward = share_of(*cost.backward, ranks);
  split_backward(whole);
  return cost;
}

std::vector<Millionths> multiply_by_ranks(std::vector<Millionths> caps, std::int32_t ranks) {
  for (Millionths& cap : caps) cap = saturated_product(cap, ranks);
  return caps;
}

std::vector<Millionths> WhatIf::caps_of(const Configuration& configuration) const {
  const std::vector<Millionths>& caps = inputs_.config().memory.cap;
  return whole_model_ ? multiply_by_ranks(caps, configuration.shape.ranks) : caps;
}

PredictInputs WhatIf::inputs_of(const Configuration& configuration) const {
  return inputs_.with([&](PredictOptions& flags) {
    flags.shape = shape_of(configuration, std::move(flags.shape));
    flags.cost.uniform = cost_of(configuration);
    flags.memory.cap = caps_of(configuration);
  });
}

WhatIf::Lowered WhatIf::lower_plan(Schedule order) const {
  Lowered lowered{require_valid(std::move(order))};
  std::variant<Program, Deadlock> program =
      lower(lowered.schedule, choose_lowering(lowered.schedule, inputs_.config()));
  if (const auto* deadlock = std::get_if<Deadlock>(&program))
    throw Error(Fault::kProblem, "deadlock: " + to_string(*deadlock));
  lowered.program = std::get<Program>(std::move(program));
  return lowered;
}

WhatIf::Lowered WhatIf::lower_plan(const Configuration& configuration) const {
  return lower_plan(build_plan(configuration, inputs_of(configuration)));
}

namespace {

/// Returns `plan`, or the reason for its refusal: the rank that exceeds its memory most. `shares`
/// is the number of ranks that share a whole model's costs.
Outcome check_limits(Plan plan, const BubbleReport& report, const MemoryModel& memory,
                     std::int32_t shares) {
  plan.peak_units /= shares;
  const std::vector<RankOverCap> over = list_ranks_over_cap(collect_peaks(report), memory);
  if (over.empty()) return {std::move(plan), ""};
  const auto& [excess, problem] = over.front();
  if (!memory.cap_bytes.empty())
    return {std::move(plan), name_flags(to_string(problem)), excess, true};
  const auto rank = static_cast<std::size_t>(*problem.rank);
  const double held = report.ranks[rank].peak.units / shares;
  const double cap = static_cast<double>(memory.cap[rank]) / (1e6 * shares);
  return {std::move(plan),
          fmt::format("rank {} holds {:g} at its peak, over --cap {:g}", rank, held, cap), excess,
          true};
}

}  // namespace

Nanos WhatIf::step(const Lowered& lowered, const UniformCost& cost) const {
  Config config;
  config.costs = UniformCosts{cost, inputs_.flags().cost.network};
  config.detail = Detail::kTimes;
  return find_step_bounds(predict_step(lowered.schedule, lowered.program, config).timeline).end;
}

Outcome WhatIf::evaluate(const Configuration& configuration, Detail detail) const {
  try {
    const PredictInputs inputs = inputs_of(configuration);
    Config config = inputs.config();
    config.detail = detail;
    const std::int32_t shares = whole_model_ ? configuration.shape.ranks : 1;
    Schedule order = build_plan(configuration, inputs);
    if (const auto report = predict_plain_step(order, config))
      return check_limits(summarize(configuration, *report), *report, report->memory, shares);
    const auto [schedule, program] = lower_plan(std::move(order));
    const PredictedStep step = predict_step(schedule, program, config);
    return check_limits(summarize(configuration, step.report), step.report, step.models.memory,
                        shares);
  } catch (const Error& error) {
    if (is_of_machine(error.fault())) throw;
    return {{}, name_flags(error.what())};
  }
}

}  // namespace bubblescope::tools
