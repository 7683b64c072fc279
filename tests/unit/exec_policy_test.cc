// Ranks that choose among ready ops on real threads: the order that the simulator predicts, and
// what is trained.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "exec/runtime/execute.h"
#include "exec/runtime/timed_work.h"
#include "sim/engine/ready_run.h"
#include "sim/engine/simulate.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/cost_model.h"
#include "sim/predict/readiness.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

constexpr Nanos kMillisecond = 1'000'000;

using Orders = std::vector<std::vector<InstructionId>>;

constexpr ReadyPriority kPriorities[] = {ReadyPriority::kOrder, ReadyPriority::kBackward,
                                         ReadyPriority::kPath};

struct Step {
  ValidSchedule schedule;
  Program program;
  std::vector<Nanos> durations;

  ReadyRules rules(ReadyPriority priority) const {
    return make_ready_rules({schedule, program, durations, MemoryModel{}}, priority);
  }
};

Step make_step(const std::string& name, const Shape& shape, Nanos forward, Nanos message,
               Overlap overlap = Overlap::kAtomic) {
  UniformCost cost;
  cost.forward = forward;
  cost.input_grad = 3 * kMillisecond;
  cost.weight_grad = 2 * kMillisecond;
  cost.message = message;
  Step step{make_hint(require_valid(*build_if_legal(find_schedule(name), shape)), overlap), {}, {}};
  step.program = lowered(step.schedule, overlap);
  step.durations = price(step.program, spread(cost, step.schedule));
  return step;
}

Orders orders_of(const Program& program, const Timeline& timeline) {
  Orders orders(static_cast<std::size_t>(program.ranks));
  for (InstructionId id = 0; id < program.size(); ++id)
    if (program.instructions[id].lane < orders.size())
      orders[program.instructions[id].lane].push_back(id);
  for (std::vector<InstructionId>& order : orders)
    std::sort(order.begin(), order.end(), [&](InstructionId left, InstructionId right) {
      return std::tuple(timeline.start[left], left) < std::tuple(timeline.start[right], right);
    });
  return orders;
}

exec::Execution run(const Step& step, exec::BackendRequest request, std::int32_t steps = 1) {
  const auto backend = exec::find_backend("cpu").make(std::move(request), step.program);
  return exec::execute(step.program, *backend, "cpu", {0, steps, {}});
}

/// Whether a step whose ops take `scale` times as long ran in the order that is predicted, and each
/// op when it is predicted to start or a little later.
bool runs_as_predicted(Step step, const ReadyRules& rules, Nanos scale) {
  for (Nanos& duration : step.durations) duration *= scale;
  const ReadyRun predicted = ReadySimulator(step.program, rules).run(step.durations);
  exec::BackendRequest request{exec::play(step.program, step.durations, exec::WaitMode::kSleep),
                               {}};
  request.policy = exec::ReadyPolicy{rules, scale * kMillisecond / 2};
  const exec::Execution execution = run(step, std::move(request));
  EXPECT_FALSE(execution.breakdown);
  const Timeline& ran = execution.steps[0];
  if (orders_of(step.program, ran) != predicted.order) return false;
  for (InstructionId id = 0; id < step.program.size(); ++id) {
    EXPECT_GE(ran.start[id], predicted.timeline.start[id]);
    EXPECT_GE(ran.end[id], predicted.timeline.end[id]);
    if (ran.end[id] > predicted.timeline.end[id] + 2 * scale * kMillisecond) return false;
  }
  return true;
}

// A busy machine may notice an end too late, so that one of some runs has to agree, each of which
// takes longer than those before it.
TEST(PlayedPolicy, RunsAsPredicted) {
  constexpr Nanos kMaxScale = 32;
  int moved = 0;
  for (const auto& [name, shape, overlap] :
       {std::tuple{"gpipe", Shape{3, 1, 4, 1, {}}, Overlap::kAtomic},
        std::tuple{"1f1b", Shape{3, 1, 5, 1, {}}, Overlap::kAtomic},
        std::tuple{"interleaved", Shape{2, 2, 4, 1, {}}, Overlap::kAtomic},
        std::tuple{"dualpipev", Shape{2, 2, 6, 1, {}}, Overlap::kAtomic},
        std::tuple{"dualpipev", Shape{2, 2, 6, 1, {}}, Overlap::kSerial},
        std::tuple{"zb-h1", Shape{3, 1, 4, 1, {}}, Overlap::kAtomic}})
    for (const ReadyPriority priority : kPriorities) {
      SCOPED_TRACE(std::string(name) + ", priority " + std::to_string(static_cast<int>(priority)));
      const Step step = make_step(name, shape, 4 * kMillisecond, kMillisecond, overlap);
      const ReadyRules rules = step.rules(priority);
      bool agrees = false;
      for (Nanos scale = 1; scale <= kMaxScale && !agrees; scale *= 2)
        agrees = runs_as_predicted(step, rules, scale);
      EXPECT_TRUE(agrees);
      for (const auto& order : ReadySimulator(step.program, rules).run(step.durations).order)
        moved += std::is_sorted(order.begin(), order.end()) ? 0 : 1;
    }
  EXPECT_GT(moved, 5);
}

/// The rule of the machine without the order of compute lanes, and the memory of the order.
void expect_rules(const Step& step, const ReadyRules& rules, const Timeline& timeline) {
  for (InstructionId id = 0; id < step.program.size(); ++id)
    for (const InstructionId awaited : step.program.dependencies_of(id))
      EXPECT_GE(timeline.start[id], timeline.end[awaited]) << id << " after " << awaited;
  const Orders orders = orders_of(step.program, timeline);
  for (const std::vector<InstructionId>& order : orders) {
    std::vector<InstructionId> given = order;
    std::sort(given.begin(), given.end());
    const auto peak = [&](const std::vector<InstructionId>& of) {
      std::int64_t held = 0;
      std::int64_t highest = 0;
      for (const InstructionId id : of) highest = std::max(highest, held += rules.memory[id]);
      return highest;
    };
    EXPECT_LE(peak(order), peak(given));
    for (std::size_t at = 0; at + 1 < order.size(); ++at) {
      EXPECT_GE(timeline.start[order[at + 1]], timeline.end[order[at]]);
      if (step.program.instructions[order[at]].op.pairing == Pairing::kFirst) {
        EXPECT_EQ(order[at + 1], *std::upper_bound(given.begin(), given.end(), order[at]));
      }
    }
  }
}

TEST(ExecutedPolicy, KeepsDependenciesMemoryAndPairsInEverySchedule) {
  const exec::Work no_work = [](const exec::WorkItem& item) { return item.clock.now(); };
  int schedules = 0;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const Shape& shape : {Shape{4, 1, 8, 1, {}}, Shape{4, 2, 8, 1, {}}, Shape{4, 1, 8, 4, {}}})
      for (const ReadyPriority priority : kPriorities) {
        const auto schedule = build_if_legal(def, shape);
        if (!schedule || !schedule->weights.empty() || !schedule->posted.empty() ||
            !schedule->offload_target_of_rank.empty())
          continue;
        SCOPED_TRACE(def.name);
        const Step step = make_step(def.name, shape, kMillisecond, 0);
        const ReadyRules rules = step.rules(priority);
        exec::BackendRequest request{no_work, {}};
        request.policy = exec::ReadyPolicy{rules, 0};
        const exec::Execution execution = run(step, std::move(request), 2);
        ASSERT_FALSE(execution.breakdown);
        for (const Timeline& timeline : execution.steps) expect_rules(step, rules, timeline);
        ++schedules;
      }
  EXPECT_GT(schedules, 60);
}

TEST(ExecutedPolicy, TrainsLikeTheSerialReference) {
  int trained = 0;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const Shape& shape :
         {Shape{4, 1, 8, 1, {}}, Shape{2, 2, 4, 1, {}}, Shape{2, 1, 3, 4, {}}}) {
      const auto schedule = build_if_legal(def, shape);
      if (!schedule || !schedule->weights.empty() || !schedule->posted.empty() ||
          !schedule->offload_target_of_rank.empty())
        continue;
      SCOPED_TRACE(def.name);
      const Step step = make_step(def.name, shape, kMillisecond, 0);
      for (const ReadyPriority priority : {ReadyPriority::kOrder, ReadyPriority::kBackward}) {
        const exec::Verification verification =
            train_by_policy(step.schedule, step.program, small_model(), {step.rules(priority), 0});
        EXPECT_TRUE(verification.matches) << to_string(verification);
        ++trained;
      }
    }
  EXPECT_GT(trained, 40);
}

TEST(ExecutedPolicy, NamesWhatFailed) {
  const Step step = make_step("1f1b", {3, 1, 6, 1, {}}, kMillisecond, 0);
  exec::BackendRequest request{[&](const exec::WorkItem& item) {
                                 if (to_string(step.program.instructions[item.id].op) == "1B2")
                                   throw Error("it broke");
                                 return item.clock.now();
                               },
                               {}};
  request.policy = exec::ReadyPolicy{step.rules(ReadyPriority::kOrder), 0};
  const exec::Execution execution = run(step, std::move(request));
  ASSERT_TRUE(execution.breakdown);
  EXPECT_NE(execution.breakdown->message.find("it broke"), std::string::npos);
  EXPECT_NE(execution.breakdown->message.find("rank 1 at 1B2"), std::string::npos)
      << execution.breakdown->message;
}

}  // namespace
}  // namespace bubblescope::tests
