// Ready policies: the engine against a plain interpreter written apart, over random schedules; the
// order that results is legal, keeps the memory bound and takes as long when it is fixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "sim/engine/memory_bound.h"
#include "sim/engine/ready_run.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower_update.h"
#include "sim/predict/predict.h"
#include "sim/predict/readiness.h"
#include "tests/support/measured_schedule.h"
#include "tests/support/random_schedule.h"

namespace bubblescope::tests {
namespace {

/// The memory of an order, step by step, at most.
std::int64_t highest_of(const std::vector<MemoryStep>& order, std::int64_t held) {
  std::int64_t highest = held;
  for (const MemoryStep& step : order) {
    highest = std::max(highest, held + step.peak);
    held += step.net;
  }
  return highest;
}

TEST(MemoryBound, AllowsWhatAPlainWalkAllows) {
  std::mt19937 random(20261126);
  for (int round = 0; round < 3000; ++round) {
    std::vector<MemoryStep> order;
    for (std::size_t size = 1 + random() % 12; order.size() < size;) {
      const auto net = static_cast<std::int64_t>(random() % 7) - 3;
      order.push_back(
          {std::max<std::int64_t>(net, 0) + static_cast<std::int64_t>(random() % 2), net});
    }
    const std::int64_t bound = std::max<std::int64_t>(highest_of(order, 0), 0);
    MemoryBound tree(order);
    std::vector<std::size_t> left(order.size());
    for (std::size_t place = 0; place < left.size(); ++place) left[place] = place;
    std::int64_t held = 0;
    while (!left.empty()) {
      std::vector<std::size_t> allowed;
      for (const std::size_t place : left) {
        std::vector<MemoryStep> rest;
        for (const std::size_t other : left)
          if (other != place) rest.push_back(order[other]);
        const bool fits =
            held + order[place].peak <= bound &&
            (order[place].net <= 0 ||
             highest_of(
                 std::vector<MemoryStep>(
                     rest.begin(),
                     rest.begin() + (std::find(left.begin(), left.end(), place) - left.begin())),
                 held + order[place].net) <= bound);
        ASSERT_EQ(tree.allows(place), fits) << "round " << round << ", place " << place;
        if (fits) allowed.push_back(place);
      }
      ASSERT_FALSE(allowed.empty()) << "round " << round;
      ASSERT_EQ(allowed.front(), left.front()) << "the order itself is always possible";
      const std::size_t taken = allowed[random() % allowed.size()];
      tree.take(taken);
      held += order[taken].net;
      std::erase(left, taken);
    }
  }
}

/// Interprets a Program under a policy, one moment after the other, with no index and no heap.
class Interpreter {
 public:
  Interpreter(const Program& program, const ReadyRules& rules, const std::vector<Nanos>& durations)
      : program_(program), rules_(rules), durations_(durations), state_(program.size(), kWaiting) {
    run_.start.assign(program.size(), 0);
    run_.end.assign(program.size(), 0);
  }

  Timeline run() {
    for (Nanos now = 0;;) {
      while (end_at(now) || start_others(now)) {
      }
      choose(now);
      const std::optional<Nanos> next = next_end();
      if (!next) return run_;
      now = *next;
    }
  }

 private:
  enum State { kWaiting, kRunning, kEnded };

  bool computes(InstructionId id) const {
    return program_.instructions[id].lane < static_cast<std::uint32_t>(program_.ranks);
  }
  bool is_second(InstructionId id) const {
    return computes(id) && program_.instructions[id].op.pairing == Pairing::kSecond;
  }

  /// The second half of a pair: the next op of its rank.
  std::optional<InstructionId> second_of(InstructionId id) const {
    if (program_.instructions[id].op.pairing != Pairing::kFirst) return {};
    for (InstructionId next = id + 1; next < program_.size(); ++next)
      if (computes(next) && program_.instructions[next].rank == program_.instructions[id].rank)
        return next;
    return {};
  }

  bool have_ended(InstructionId id, std::optional<InstructionId> except) const {
    for (const InstructionId awaited : program_.dependencies_of(id))
      if (state_[awaited] != kEnded && awaited != except) return false;
    return true;
  }

  bool end_at(Nanos now) {
    bool any = false;
    for (InstructionId id = 0; id < program_.size(); ++id)
      if (state_[id] == kRunning && run_.start[id] <= now && run_.end[id] == now) {
        state_[id] = kEnded;
        any = true;
      }
    return any;
  }

  bool start_others(Nanos now) {
    bool any = false;
    for (InstructionId id = 0; id < program_.size(); ++id)
      if (!computes(id) && state_[id] == kWaiting && have_ended(id, {}) && heads_lane(id)) {
        start(id, now);
        any = true;
      }
    return any;
  }

  bool heads_lane(InstructionId id) const {
    if (program_.instructions[id].lane == kNoLane) return true;
    for (InstructionId before = 0; before < id; ++before)
      if (program_.instructions[before].lane == program_.instructions[id].lane &&
          state_[before] != kEnded)
        return false;
    return true;
  }

  void start(InstructionId id, Nanos now) {
    state_[id] = kRunning;
    run_.start[id] = now;
    run_.end[id] = now + durations_[id];
  }

  std::optional<Nanos> next_end() const {
    std::optional<Nanos> next;
    for (InstructionId id = 0; id < program_.size(); ++id)
      if (state_[id] == kRunning && (!next || run_.end[id] < *next)) next = run_.end[id];
    return next;
  }

  void choose(Nanos now) {
    std::vector<InstructionId> chosen;
    for (std::int32_t rank = 0; rank < program_.ranks; ++rank)
      if (const auto best = best_of(rank)) chosen.push_back(*best);
    for (const InstructionId id : chosen) {
      start(id, now);
      if (const auto second = second_of(id)) start(*second, run_.end[id]);
    }
  }

  std::optional<InstructionId> best_of(std::int32_t rank) const {
    std::optional<InstructionId> best;
    for (InstructionId id = 0; id < program_.size(); ++id) {
      if (!computes(id) || program_.instructions[id].rank != rank) continue;
      if (state_[id] == kRunning) return {};
      if (state_[id] != kWaiting || is_second(id) || !is_ready(id) || !fits(id)) continue;
      if (!is_compute(program_.instructions[id].op.kind) && waits_in_place(id)) continue;
      if (!best || rules_.priority[id] < rules_.priority[*best]) best = id;
    }
    return best;
  }

  /// Whether anything before it in its rank's order has not ended.
  bool waits_in_place(InstructionId id) const {
    for (InstructionId before = 0; before < id; ++before)
      if (program_.instructions[before].lane == program_.instructions[id].lane &&
          state_[before] != kEnded)
        return true;
    return false;
  }

  bool is_ready(InstructionId id) const {
    const auto second = second_of(id);
    return have_ended(id, second) && (!second || have_ended(*second, id));
  }

  /// Whether the rank's order, with this op first, never holds more than in its own order.
  bool fits(InstructionId chosen) const {
    const std::int32_t rank = program_.instructions[chosen].rank;
    std::vector<InstructionId> rest;
    std::int64_t held = 0;
    std::int64_t bound = 0;
    std::int64_t level = 0;
    const auto second = second_of(chosen);
    for (InstructionId id = 0; id < program_.size(); ++id) {
      if (!computes(id) || program_.instructions[id].rank != rank) continue;
      level += rules_.memory[id];
      bound = std::max(bound, level);
      if (state_[id] != kWaiting)
        held += rules_.memory[id];
      else if (id != chosen && id != second)
        rest.push_back(id);
    }
    held += rules_.memory[chosen];
    std::int64_t highest = held;
    if (second) highest = std::max(highest, held += rules_.memory[*second]);
    for (const InstructionId id : rest) highest = std::max(highest, held += rules_.memory[id]);
    return highest <= bound;
  }

  const Program& program_;
  const ReadyRules& rules_;
  const std::vector<Nanos>& durations_;
  std::vector<State> state_;
  Timeline run_;
};

std::vector<Nanos> random_durations(const Program& program, std::mt19937& random) {
  std::vector<Nanos> durations;
  for (InstructionId id = 0; id < program.size(); ++id)
    durations.push_back(static_cast<Nanos>(random() % 4 == 0 ? 0 : random() % 30));
  return durations;
}

/// Forwards add 1, or 2 on odd stages; what releases them does so at the end.
ReadyRules rules_of(const Program& program, const std::vector<Nanos>& durations,
                    std::uint32_t seed) {
  ReadyRules rules{std::vector<std::int64_t>(program.size(), 0),
                   std::vector<std::int64_t>(program.size(), 0)};
  const std::vector<Nanos> paths = find_remaining_paths(program, durations);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Op& op = program.instructions[id].op;
    const std::int64_t saved = 1 + op.stage % 2;
    if (op.kind == OpKind::kForward) rules.memory[id] = saved;
    if (makes_weight_grad(op.kind)) rules.memory[id] = -saved;
    if (seed % 3 == 1) rules.priority[id] = op.kind == OpKind::kForward ? 1 : 0;
    if (seed % 3 == 2) rules.priority[id] = -paths[id];
  }
  return rules;
}

bool has_gradients(const Program& program) {
  return std::any_of(
      program.instructions.begin(), program.instructions.end(),
      [](const Instruction& instruction) { return makes_weight_grad(instruction.op.kind); });
}

TEST(ReadyPolicy, IsWhatAPlainInterpreterDoes) {
  std::mt19937 random(20261127);
  int reordered = 0;
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    RandomTraits traits;
    traits.slices = seed % 5 == 1;
    const Schedule schedule = random_schedule(seed, traits);
    Program program = lower_or_throw(schedule);
    if (seed % 4 == 3 && has_gradients(program))
      program = std::get<Program>(lower_update(require_valid(schedule), program,
                                               {OptimizerMode::kLocal, GradReduction::kOverlap}));
    const std::vector<Nanos> durations = random_durations(program, random);
    const ReadyRules rules = rules_of(program, durations, seed);
    const ReadyRun found = ReadySimulator(program, rules).run(durations);
    const Timeline expected = Interpreter(program, rules, durations).run();
    ASSERT_EQ(found.timeline.start, expected.start) << "seed " << seed;
    ASSERT_EQ(found.timeline.end, expected.end) << "seed " << seed;
    for (const std::vector<InstructionId>& order : found.order)
      reordered += std::is_sorted(order.begin(), order.end()) ? 0 : 1;
  }
  EXPECT_GT(reordered, 100);
}

/// The chosen order as a schedule, and its times when it is fixed.
Timeline fixed_times(const Schedule& schedule, const Program& program, const ReadyRun& run,
                     const std::vector<Nanos>& durations) {
  Schedule fixed = schedule;
  std::vector<std::pair<Op, Nanos>> by_op;
  for (std::size_t rank = 0; rank < fixed.order.size(); ++rank) {
    fixed.order[rank].clear();
    for (const InstructionId id : run.order[rank])
      fixed.order[rank].push_back(program.instructions[id].op);
  }
  const Program lowered = lower_or_throw(require_valid(fixed));
  std::vector<Nanos> same;
  for (const Instruction& instruction : lowered.instructions)
    for (InstructionId id = 0; id < program.size(); ++id)
      if (program.instructions[id].op == instruction.op) {
        same.push_back(durations[id]);
        break;
      }
  return simulate(lowered, same);
}

TEST(ReadyPolicy, ChoosesAnOrderThatTakesAsLongWhenFixed) {
  std::mt19937 random(20261128);
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Schedule schedule = random_schedule(seed);
    const Program program = lower_or_throw(schedule);
    const std::vector<Nanos> durations = random_durations(program, random);
    const ReadyRules rules = rules_of(program, durations, seed);
    const ReadyRun run = ReadySimulator(program, rules).run(durations);
    std::vector<Nanos> found = run.timeline.end;
    std::vector<Nanos> expected = fixed_times(schedule, program, run, durations).end;
    std::sort(found.begin(), found.end());
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(found, expected) << "seed " << seed;
  }
}

TEST(ReadyPolicy, KeepsThePeaksOfTheOrder) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const Schedule schedule = random_schedule(seed);
    Config config;
    UniformCost cost;
    cost.forward = 1000 + seed % 7 * 500;
    cost.message = seed % 5 * 400;
    config.costs = UniformCosts{cost};
    const Prediction fixed = predict(require_valid(schedule), config);
    for (const ReadyPriority policy :
         {ReadyPriority::kOrder, ReadyPriority::kBackward, ReadyPriority::kPath}) {
      config.policy = policy;
      const Prediction ready = predict(require_valid(schedule), config);
      for (std::size_t rank = 0; rank < fixed.report.ranks.size(); ++rank)
        ASSERT_LE(ready.report.ranks[rank].peak.chunks, fixed.report.ranks[rank].peak.chunks)
            << "seed " << seed;
    }
  }
}

// Without noise two runs are the same, and noise of the same seeds gives the same scenarios.
TEST(ReadyPolicy, RunsEveryScenarioAnew) {
  const Schedule schedule = random_schedule(7);
  Config config;
  config.policy = ReadyPriority::kBackward;
  config.scenarios.noise.op_jitter = 0.3;
  config.scenarios.count = 40;
  const Prediction first = predict(require_valid(schedule), config);
  const Prediction second = predict(require_valid(schedule), config);
  ASSERT_TRUE(first.report.noise);
  EXPECT_EQ(first.report.noise->makespans.size(), 40u);
  EXPECT_EQ(first.report.noise->makespans, second.report.noise->makespans);
}

}  // namespace
}  // namespace bubblescope::tests
