// Steps that are predicted from short ones print exactly what whole ones print: every registered
// schedule over small shapes, under random costs, and schedules that are damaged.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "sim/ir/order_cycle.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "sim/model/schedule_refusal.h"
#include "sim/predict/moves.h"
#include "sim/predict/predict_repeated.h"
#include "traces/drawings/drawing.h"
#include "traces/reports/report_csv.h"
#include "traces/reports/report_json.h"
#include "traces/reports/text_report.h"
#include "traces/text/shown_ranks.h"

namespace bubblescope::tests {
namespace {

using Random = std::mt19937_64;

std::int64_t pick(Random& random, std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, most)(random);
}

/// Everything that simulate prints of a step.
std::string print(const Prediction& step, bool all_ranks) {
  traces::DrawOptions draw;
  draw.all_ranks = all_ranks;
  const traces::StepRecord record{step.schedule, step.program, step.timeline, step.report, {}};
  return traces::draw_timeline(record, draw) + traces::write_text_report(record, draw) +
         traces::write_report_csv(step.report) +
         traces::write_report_json(step.report, step.program, step.timeline);
}

/// Short steps of every length, however little they save.
constexpr ShortSteps kAnyShortStep{2, 1, 0.01, 100};

/// Whether the step was predicted from a short one; it must print the same then.
bool is_repeated(const ValidSchedule& schedule, const Config& config, const std::string& what) {
  const auto ranks = [](const BubbleReport& report) {
    return traces::choose_shown_ranks(report, false);
  };
  const auto repeated = predict_repeated(schedule, config, ranks, kAnyShortStep);
  const auto* const step = std::get_if<Prediction>(&repeated);
  if (step == nullptr) return false;
  EXPECT_EQ(print(*step, false), print(predict(schedule, config), false)) << what;
  return true;
}

/// Half of the costs are small, so that equal times are frequent.
UniformCost random_uniform(Random& random) {
  const std::int64_t most = pick(random, 0, 1) == 0 ? 3 : 1000;
  UniformCost cost;
  cost.forward = pick(random, 1, most);
  cost.input_grad = pick(random, 1, most);
  cost.weight_grad = pick(random, 1, most);
  if (pick(random, 0, 2) == 0) cost.backward = pick(random, 1, 2 * most);
  cost.message = pick(random, 0, 2) == 0 ? pick(random, 1, most) : 0;
  cost.per = UniformCost::Per::kChunk;
  return cost;
}

CostTable random_table(Random& random, std::int32_t stages) {
  CostTable table;
  table.message.latency = pick(random, 0, 3);
  const std::int64_t most = pick(random, 0, 1) == 0 ? 4 : 50;
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    StageEntry entry;
    entry.forward = pick(random, 1, most);
    entry.input_grad = pick(random, 1, most);
    entry.weight_grad = pick(random, 1, most);
    entry.selective_recompute = pick(random, 1, most);
    entry.activation_bytes = MemoryDelta{3, -1, -2};
    table.stages.push_back(entry);
  }
  return table;
}

Config random_config(Random& random, const Schedule& schedule) {
  Config config;
  config.costs = UniformCosts{random_uniform(random)};
  if (pick(random, 0, 2) == 0) config.costs = random_table(random, schedule.stages_per_pipeline());
  config.lower.overlap = static_cast<Overlap>(pick(random, 0, 2));
  config.memory.release = static_cast<Release>(pick(random, 0, 2));
  config.memory.cap = {pick(random, 1, 8) * kWhole};
  if (pick(random, 0, 3) == 0)
    config.lower.update.optimizer = static_cast<OptimizerMode>(pick(random, 1, 3));
  config.slack = pick(random, 0, 2) == 0 ? Slack::kSkip : Slack::kFind;
  if (pick(random, 0, 3) == 0) config.slow_ranks = {{0, 1.5}};
  return config;
}

std::vector<ScheduleRequest> long_requests(const ScheduleDef& def) {
  std::vector<ScheduleRequest> requests;
  const std::int32_t chunks = def.implied_chunks ? *def.implied_chunks : def.default_chunks;
  for (const std::int32_t ranks : {1, 2, 3, 4, 6, 8})
    for (const std::int32_t microbatches : {7, 24, 10 * ranks, 10 * ranks + 1, 12 * ranks + 3}) {
      if (def.reads_costs && ranks * microbatches > 100) continue;
      ScheduleRequest& request = requests.emplace_back();
      request.shape.ranks = ranks;
      request.shape.microbatches = microbatches;
      request.shape.chunks = chunks;
      if (def.implied_slices > 1) request.shape.slices = def.implied_slices;
    }
  return requests;
}

TEST(RepeatedSteps, PrintWhatWholeStepsPrint) {
  Random random(16);
  std::map<std::string, int> repeated;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const ScheduleRequest& request : long_requests(def)) {
      if (!refuse_schedule(def, request).empty()) continue;
      const ValidSchedule schedule = build_schedule(def, request);
      for (int costs = 0; costs < 4; ++costs) {
        const std::string what = def.name + " p" + std::to_string(request.shape.ranks) + " m" +
                                 std::to_string(request.shape.microbatches) + " costs " +
                                 std::to_string(costs);
        if (is_repeated(schedule, random_config(random, schedule), what)) ++repeated[def.name];
        ASSERT_FALSE(HasFailure()) << what;
      }
    }
  for (const char* name : {"1f1b", "interleaved", "eager-1f1b", "zb-h1", "hanayo"})
    EXPECT_GT(repeated[name], 10) << name;
}

TEST(RepeatedSteps, KeepRecomputation) {
  Random random(8);
  ScheduleRequest request;
  request.shape = {4, 1, 60, 1, {}};
  int repeated = 0;
  for (const char* name : {"1f1b", "zb-h1"})
    for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
      const ValidSchedule schedule = apply_moves(build_schedule(find_schedule(name), request),
                                                 Moves{.recompute = {recompute}});
      for (int costs = 0; costs < 8; ++costs)
        repeated += is_repeated(schedule, random_config(random, schedule), name) ? 1 : 0;
    }
  EXPECT_GT(repeated, 8);
}

/// The published shapes, by the limits that commands use. Where messages take time, 1F1B repeats
/// itself after p micro-batches, not after each.
TEST(RepeatedSteps, ShortenLongStepsByTheDefaultLimits) {
  struct Case {
    const char* name;
    Shape shape;
    Nanos message = 0;
  };
  for (const Case& given :
       {Case{"1f1b", {8, 1, 64, 1, {}}}, Case{"1f1b", {16, 1, 256, 1, {}}},
        Case{"interleaved", {8, 2, 128, 1, {}}}, Case{"1f1b", {4, 1, 4099, 1, {}}},
        Case{"1f1b", {24, 1, 1200, 1, {}}, 400'000}, Case{"1f1b", {33, 1, 1501, 1, {}}, 1'700'000},
        Case{"zb-h1", {16, 1, 801, 1, {}}, 400'000}}) {
    ScheduleRequest request;
    request.shape = given.shape;
    const ValidSchedule schedule = build_schedule(find_schedule(given.name), request);
    Config config;
    UniformCost cost;
    cost.message = given.message;
    config.costs = UniformCosts{cost};
    const auto none = [](const BubbleReport&) { return std::vector<std::int32_t>{}; };
    const auto made = predict_repeated(schedule, config, none);
    const auto* const step = std::get_if<Prediction>(&made);
    ASSERT_NE(step, nullptr) << given.name;
    const Prediction whole = predict(schedule, config);
    EXPECT_LT(step->program.size(), whole.program.size() * 2 / 3) << given.name;
    EXPECT_EQ(traces::write_report_json(step->report, step->program, step->timeline),
              traces::write_report_json(whole.report, whole.program, whole.timeline));
  }
}

/// A step whose micro-batches differ, or that needs more than a report, is predicted as a whole.
TEST(RepeatedSteps, AreWholeWhereMicrobatchesDiffer) {
  ScheduleRequest request;
  request.shape = {4, 1, 64, 1, {}};
  const ValidSchedule schedule = build_schedule(find_schedule("1f1b"), request);
  const Config plain;
  ASSERT_TRUE(is_repeated(schedule, plain, "plain"));
  Config config = plain;
  config.injections = {parse_injection("rank=2,op=2F30,delay=5ms")};
  EXPECT_FALSE(is_repeated(schedule, config, "injection"));
  config = plain;
  config.arrivals.assign(64, 0);
  EXPECT_FALSE(is_repeated(schedule, config, "arrivals"));
  config = plain;
  config.scenarios.sensitivity = true;
  EXPECT_FALSE(is_repeated(schedule, config, "sensitivity"));
  config = plain;
  config.scenarios.noise.op_jitter = 0.1;
  EXPECT_FALSE(is_repeated(schedule, config, "noise"));
}

/// validate_schedule() judges long schedules by their cycles; find_problems() looks at every op.
TEST(OrderCycles, DamagedSchedulesAreFoundInvalid) {
  Random random(4);
  int invalid = 0;
  for (const char* name : {"1f1b", "interleaved", "zb-h1"}) {
    ScheduleRequest request;
    request.shape = {4, name == std::string("interleaved") ? 2 : 1, 2200, 1, {}};
    const ValidSchedule schedule = build_schedule(find_schedule(name), request);
    ASSERT_TRUE(find_order_cycle(schedule)) << name;
    for (int damage = 0; damage < 60; ++damage) {
      Schedule damaged = schedule;
      RankOrder& ops = damaged.order[static_cast<std::size_t>(pick(random, 0, 3))];
      // The cycles begin and end near the ends of an order, where damage is the hardest to see.
      const auto last = static_cast<std::int64_t>(ops.size()) - 1;
      const std::int64_t near = pick(random, 0, 40);
      const auto at = static_cast<std::size_t>(pick(random, 0, 1) == 0 ? near : last - near);
      const auto other = static_cast<std::size_t>(pick(random, 0, last));
      switch (damage % 4) {
        case 0: std::swap(ops[at], ops[other]); break;
        case 1: ops[at].microbatch = ops[other].microbatch; break;
        case 2: ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(at)); break;
        case 3: ops[at].microbatch += static_cast<std::int32_t>(pick(random, -1, 1)); break;
      }
      const bool is_valid = find_problems(damaged).empty();
      invalid += is_valid ? 0 : 1;
      EXPECT_EQ(std::holds_alternative<ValidSchedule>(validate_schedule(damaged)), is_valid)
          << name << " damage " << damage;
    }
  }
  EXPECT_GT(invalid, 60);
}

}  // namespace
}  // namespace bubblescope::tests
