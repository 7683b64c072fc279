// Prices a Program for every scenario, and times it in batches.
#include "tools/python/binding/scenarios.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/engine/simulate_batch.h"
#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/range.h"
#include "sim/predict/choose_lowering.h"
#include "tools/inputs/load_schedule.h"
#include "tools/interrupt.h"
#include "tools/python/binding/calls.h"

namespace bubblescope::tools {

namespace nb = nanobind;

namespace {

constexpr double kNanosPerMillisecond = 1e6;
constexpr double kMaxMilliseconds = 8.64e9;  ///< 100 days, as for the flags

Nanos to_nanos(double milliseconds, const std::string& name) {
  if (!(milliseconds >= 0 && milliseconds <= kMaxMilliseconds))
    throw Error(fmt::format("{}: {} is not a duration in ms; write one from 0 to 8.64e9", name,
                            milliseconds));
  return std::llround(milliseconds * kNanosPerMillisecond);
}

/// Where a cost of this name is set, for all stages and for one.
struct CostPlace {
  const char* name;
  void (*set)(UniformCost& cost, Nanos time);
  void (*set_stage)(StageCost& cost, Nanos time);
};

constexpr CostPlace kPlaces[] = {
    {"f", [](UniformCost& cost, Nanos time) { cost.forward = time; },
     [](StageCost& cost, Nanos time) { cost.forward = time; }},
    {"i", [](UniformCost& cost, Nanos time) { cost.input_grad = time; },
     [](StageCost& cost, Nanos time) { cost.input_grad = time; }},
    {"w", [](UniformCost& cost, Nanos time) { cost.weight_grad = time; },
     [](StageCost& cost, Nanos time) { cost.weight_grad = time; }},
    {"b", [](UniformCost& cost, Nanos time) { cost.backward = time; },
     [](StageCost& cost, Nanos time) { cost.backward = time; }},
    {"p2p", [](UniformCost& cost, Nanos time) { cost.message = time; }, nullptr},
};

const CostPlace& find_place(const ScenarioCost& cost) {
  for (const CostPlace& place : kPlaces)
    if (cost.name == place.name) return place;
  throw Error(cost.name + " cannot vary between scenarios; f, i, w, b and p2p can");
}

/// A cost, and what it sets.
struct PlacedCost {
  const ScenarioCost& cost;
  const CostPlace& place;

  bool per_stage() const { return cost.per_scenario > 1; }
  Nanos at(std::size_t scenario, std::int32_t stage = 0) const {
    const auto width = static_cast<std::size_t>(cost.per_scenario);
    return to_nanos(cost.milliseconds[scenario * width + static_cast<std::size_t>(stage)],
                    cost.name);
  }
};

std::vector<PlacedCost> place_costs(const ScenarioCosts& costs, const Schedule& schedule) {
  std::vector<PlacedCost> placed;
  for (const ScenarioCost& cost : costs) {
    placed.push_back({cost, find_place(cost)});
    if (!placed.back().per_stage()) continue;
    if (placed.back().place.set_stage == nullptr || cost.per_scenario != schedule.stages())
      throw Error(fmt::format("{} has {}; {} has {}, and p2p one column only", cost.name,
                              counted(cost.per_scenario, "column"), schedule.name,
                              counted(schedule.stages(), "stage")));
    if (schedule.shape.slices > 1)
      throw Error(cost.name + ": costs per stage need whole sequences; leave slices out");
  }
  return placed;
}

/// The costs of one scenario. A full backward is the sum of its halves unless it is given.
CostModel cost_scenario(const std::vector<PlacedCost>& costs, std::size_t scenario,
                        UniformCost uniform, const Schedule& schedule) {
  for (const PlacedCost& cost : costs)
    if (!cost.per_stage()) cost.place.set(uniform, cost.at(scenario));
  CostModel model = spread(uniform, schedule);
  bool halves = false;
  bool whole = uniform.backward.has_value();
  for (const PlacedCost& cost : costs) {
    if (!cost.per_stage()) continue;
    for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
      cost.place.set_stage(model.stages[static_cast<std::size_t>(stage)], cost.at(scenario, stage));
    halves = halves || cost.cost.name == "i" || cost.cost.name == "w";
    whole = whole || cost.cost.name == "b";
  }
  if (halves && !whole)
    for (StageCost& stage : model.stages) stage.backward = stage.input_grad + stage.weight_grad;
  return model;
}

void expect_plain(const PredictInputs& inputs) {
  const PredictOptions& flags = inputs.flags();
  const auto refuse = [](bool given, const char* flag) {
    if (given)
      throw Error(std::string(flag) +
                  ": scenarios have uniform costs, and messages that share nothing; simulate them "
                  "one by one");
  };
  refuse(flags.model.given(), "--model");
  refuse(!flags.cost.file.empty(), "--costs");
  refuse(!flags.shape.layout.empty(), "--layout");
  refuse(flags.cost.network.has_value(), "--network");
  refuse(!flags.injections.empty(), "--inject");
  refuse(!flags.arrivals_file.empty(), "--arrivals");
  refuse(flags.policy.has_value(), "--policy");
  refuse(flags.cost.lower.send_budget.has_value(), "--send-budget");
  refuse(inputs.config().moves.any(), "--recompute, --offload and --fsdp");
}

std::size_t count_scenarios(const ScenarioCosts& costs) {
  if (costs.empty()) throw Error("no cost varies; give an array, such as f=[10, 11, 12]");
  std::optional<std::size_t> count;
  for (const ScenarioCost& cost : costs) {
    const std::size_t rows = cost.milliseconds.size() / static_cast<std::size_t>(cost.per_scenario);
    if (count && *count != rows)
      throw Error(fmt::format("{} has {}, {} has {}; give every array as many", cost.name,
                              counted(rows, "scenario"), costs.front().name, *count));
    count = rows;
  }
  return *count;
}

/// The instructions that take the same time in every scenario are a class; one of each is priced.
/// With costs per stage, and messages that share nothing, these are those with the same kind of op
/// on the same stage and slice.
struct PriceClasses {
  Program examples;                     ///< one instruction of each class, without dependencies
  std::vector<std::uint32_t> class_of;  ///< [instruction]
  std::vector<std::int64_t> sizes;      ///< [class]: its instructions
};

std::uint64_t class_key(const Instruction& instruction) {
  const Op& op = instruction.op;
  const bool is_local = instruction.peer == instruction.rank;
  std::uint64_t key = static_cast<std::uint32_t>(op.stage);
  key = key << 16 | static_cast<std::uint16_t>(op.slice);
  key = key << 8 | static_cast<std::uint8_t>(op.kind);
  return key << 8 | static_cast<std::uint64_t>(instruction.role) << 1 | (is_local ? 1 : 0);
}

PriceClasses find_classes(const Program& program) {
  PriceClasses classes;
  classes.examples.ranks = program.ranks;
  classes.examples.lanes = program.lanes;
  classes.class_of.reserve(program.instructions.size());
  std::unordered_map<std::uint64_t, std::uint32_t> known;
  for (const Instruction& instruction : program.instructions) {
    const auto next = static_cast<std::uint32_t>(known.size());
    const auto [found, is_new] = known.emplace(class_key(instruction), next);
    if (is_new) {
      classes.examples.instructions.push_back(instruction);
      classes.sizes.push_back(0);
    }
    ++classes.sizes[found->second];
    classes.class_of.push_back(found->second);
  }
  classes.examples.dependency_begin.assign(classes.examples.instructions.size() + 1, 0);
  return classes;
}

/// Returns the durations of scenarios `begin` to `end` - 1, at most 16, class by class.
std::vector<Batch> price_batch(const PriceClasses& classes, std::size_t begin, std::size_t end,
                               const std::function<CostModel(std::size_t)>& cost) {
  std::vector<Batch> durations(classes.sizes.size());
  for (std::size_t scenario = begin; scenario < end; ++scenario) {
    const std::vector<Nanos> times = price(classes.examples, cost(scenario));
    DurationSum sum;
    for (std::size_t id = 0; id < times.size(); ++id) {
      sum.add(multiply(times[id], classes.sizes[id], "the sum of all ops"));
      durations[id][scenario - begin] = static_cast<double>(times[id]);
    }
    sum.expect_in_range();
  }
  return durations;
}

}  // namespace

std::vector<Nanos> simulate_scenarios(const ValidSchedule& schedule, const PredictInputs& inputs,
                                      const ScenarioCosts& costs) {
  expect_plain(inputs);
  const std::size_t scenarios = count_scenarios(costs);
  const std::vector<PlacedCost> placed = place_costs(costs, schedule);
  const Program program = lower_or_explain(schedule, choose_lowering(schedule, inputs.config()));
  const auto cost = [&](std::size_t scenario) {
    return cost_scenario(placed, scenario, inputs.flags().cost.uniform, schedule);
  };
  const PriceClasses classes = find_classes(program);
  std::vector<Batch> durations;
  const InterruptCheck on_signal(expect_no_signal);
  return simulate_batches(program, scenarios, [&](std::size_t block) -> BatchDurations {
    check_interrupt();
    const std::size_t begin = block * kBatchWidth;
    const std::size_t end = std::min(begin + kBatchWidth, scenarios);
    durations = price_batch(classes, begin, end, cost);
    return [&](InstructionId id) { return durations[classes.class_of[id]]; };
  });
}

void bind_scenarios(nb::module_& module) {
  using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
  nb::class_<ScenarioCost>(module, "ScenarioCost")
      .def("__init__", [](ScenarioCost* made, const std::string& name, const Numbers& numbers) {
        if (numbers.ndim() < 1 || numbers.ndim() > 2 ||
            (numbers.ndim() == 2 && numbers.shape(1) == 0))
          throw nb::value_error(
              "costs are one number per scenario, or one row with a number per stage");
        new (made) ScenarioCost{name, 1, {}};
        if (numbers.ndim() == 2) made->per_scenario = static_cast<std::int32_t>(numbers.shape(1));
        made->milliseconds.assign(numbers.data(), numbers.data() + numbers.size());
      });
}

}  // namespace bubblescope::tools
