// From options to a predicted step.
#include "tools/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/ir/validate.h"
#include "traces/cost_file.h"
#include "traces/drawing.h"

namespace bubblescope {

namespace {

constexpr std::int64_t kMaxOps = 500'000'000;

bool is_path(const std::string& name) {
  return name == "-" || name.find_first_of("./") != std::string::npos;
}

std::int32_t required(const std::optional<std::int32_t>& value, const std::string& schedule,
                      const std::string& flag) {
  if (value) return *value;
  throw Error(fmt::format("{} needs {}; for example 'bubblescope simulate {} --pp 4 -m 8'",
                          schedule, flag, schedule));
}

ScheduleRequest request_of(const ScheduleDef& def, const PredictOptions& options) {
  const ShapeOptions& given = options.shape;
  ScheduleRequest request;
  request.shape.ranks = required(given.ranks, def.name, "--pp");
  request.shape.microbatches = required(given.microbatches, def.name, "-m");
  request.shape.chunks = given.chunks.value_or(def.implied_chunks.value_or(1));
  request.shape.slices = given.slices.value_or(1);
  request.shape.group_size = given.group_size;
  request.profile = given.profile;
  request.cost = options.cost.uniform;
  request.moe_overlap = given.moe_overlap;
  const std::int64_t ops = std::int64_t{2} * request.shape.ranks * request.shape.chunks *
                           request.shape.microbatches * request.shape.slices;
  if (ops > kMaxOps)
    throw Error(
        fmt::format("this shape has at least {} ops, the limit is {}; ask for fewer "
                    "micro-batches, ranks or chunks",
                    ops, kMaxOps));
  return request;
}

/// A file says its own shape; flags that repeat it must agree.
void expect_agreement(const Schedule& schedule, const ShapeOptions& given,
                      const std::string& path) {
  const auto expect = [&](const char* flag, const std::optional<std::int32_t>& asked,
                          std::int32_t is) {
    if (asked && *asked != is)
      throw Error(fmt::format("{} has {} {}, not {}; leave {} out", path, is, flag, *asked, flag));
  };
  expect("--pp", given.ranks, schedule.shape.ranks);
  expect("-m", given.microbatches, schedule.shape.microbatches);
  expect("--vpp", given.chunks, schedule.shape.chunks);
  expect("--slices", given.slices, schedule.shape.slices);
}

[[noreturn]] void refuse(const Schedule& schedule, const Problems& problems) {
  fmt::print(stderr, "{}", draw_grid(schedule, problems));
  throw Error(Fault::kProblem, fmt::format("{} is not legal: {} problem(s), the first: {}",
                                           schedule.name, problems.size(), problems[0].message));
}

}  // namespace

Schedule load_schedule(const std::string& name_or_path, const PredictOptions& options) {
  if (!is_path(name_or_path)) {
    const ScheduleDef& def = find_schedule(name_or_path);
    return build_schedule(def, request_of(def, options));
  }
  Schedule schedule = read_schedule(name_or_path);
  expect_agreement(schedule, options.shape, name_or_path);
  return schedule;
}

CostModel load_costs(const Schedule& schedule, const PredictOptions& options) {
  if (options.cost.file.empty()) return spread(options.cost.uniform, schedule);
  if (options.cost.any_uniform)
    throw Error("--costs gives all costs; leave --f, --i, --w, --b and --p2p out");
  return cost_model(read_cost_file(options.cost.file), schedule);
}

MemoryModel load_memory(const Schedule& schedule, const PredictOptions& options) {
  using Per = UniformCost::Per;
  const Shape& shape = schedule.shape;
  MemoryModel memory;
  if (!options.cost.file.empty())
    memory = memory_model(read_cost_file(options.cost.file), schedule);
  memory.release = options.memory.release;
  memory.unit = options.memory.unit;
  const Per per = options.cost.uniform.per;
  memory.unit_parts =
      (per == Per::kRank ? shape.chunks : 1) * (per == Per::kSlice ? 1 : shape.slices);
  memory.cap = options.memory.cap;
  if (memory.cap.size() == 1) memory.cap.resize(shape.ranks, memory.cap[0]);
  if (!memory.cap.empty() && memory.cap.size() != static_cast<std::size_t>(shape.ranks))
    throw Error(fmt::format("--cap has {} entries for {} ranks; give one, or one per rank",
                            memory.cap.size(), shape.ranks));
  return memory;
}

Program lower_or_explain(const Schedule& schedule, const LowerOptions& options) {
  Problems problems = validate_ops(schedule);
  if (problems.empty()) problems = validate_messages(schedule);
  if (!problems.empty()) refuse(schedule, problems);
  std::variant<Program, Deadlock> lowered = lower(schedule, options);
  if (const auto* deadlock = std::get_if<Deadlock>(&lowered))
    refuse(schedule, {deadlock_problem(schedule, *deadlock)});
  return std::get<Program>(std::move(lowered));
}

Step predict(const std::string& name_or_path, const PredictOptions& options) {
  Step step;
  step.schedule = load_schedule(name_or_path, options);
  step.program = lower_or_explain(step.schedule, options.cost.lower);
  const std::vector<Nanos> durations = price(step.program, load_costs(step.schedule, options));
  step.timeline = simulate(step.program, inject(options.injections, step.program, durations));
  step.report =
      analyze(step.schedule, step.program, step.timeline, load_memory(step.schedule, options));
  return step;
}

void write_exports(const Step& step, const ExportOptions& exports) {
  for (const auto& [name, path] : exports) {
    if (path.empty()) continue;
    const TimelineFormat* format = Registry<TimelineFormat>::instance().find(name);
    write_file(path, format->write(step.recording(), path));
    if (path != "-") fmt::print(stderr, "wrote {}\n", path);
  }
}

Problems over_cap(const BubbleReport& report, const MemoryModel& memory) {
  Problems problems;
  for (std::size_t rank = 0; rank < memory.cap.size(); ++rank) {
    const double cap = static_cast<double>(memory.cap[rank]) / 1e6;
    const double held = report.ranks[rank].peak.units;
    if (held > cap * (1 + 1e-9))
      problems.push_back(
          {static_cast<std::int32_t>(rank),
           {},
           fmt::format("rank {} holds {:g} at its peak, over --cap {:g}", rank, held, cap)});
  }
  return problems;
}

}  // namespace bubblescope
