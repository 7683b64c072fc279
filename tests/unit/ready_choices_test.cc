// Choices of a rank whose order is a hint, against a walk over all that is ready; and how pairs of
// ops are ranked.
#include "sim/engine/ready_choices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "sim/engine/ready_run.h"
#include "sim/predict/readiness.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

/// Units with few or many different amounts of memory.
std::vector<ReadyUnit> random_units(std::mt19937& random, std::uint32_t amounts) {
  std::vector<ReadyUnit> units;
  const std::size_t size = 1 + random() % 40;
  for (InstructionId id = 0; id < size; ++id) {
    const auto net = static_cast<std::int64_t>(random() % (2 * amounts + 1)) - amounts;
    const auto more = static_cast<std::int64_t>(random() % 2);
    units.push_back({id, id, {std::max<std::int64_t>(net, 0) + more, net}});
  }
  return units;
}

using Ready = std::set<std::pair<std::int64_t, std::uint32_t>>;  ///< priority, place

std::optional<std::uint32_t> walk(const Ready& ready, const MemoryBound& memory) {
  for (const auto& [priority, place] : ready)
    if (memory.allows(place)) return place;
  return {};
}

TEST(ReadyChoices, AreThoseOfAWalkOverAllThatIsReady) {
  std::mt19937 random(20261130);
  int forbidden = 0;
  for (std::uint32_t round = 0; round < 4000; ++round) {
    const std::vector<ReadyUnit> units = random_units(random, round % 2 == 0 ? 2 : 30);
    std::vector<std::int64_t> priority;
    for (std::size_t at = 0; at < units.size(); ++at)
      priority.push_back(static_cast<std::int64_t>(random() % (round % 3 == 0 ? 3 : 100)));
    MemoryBound memory = bound_of(units);
    ReadyChoices choices(units, priority);
    Ready ready;
    std::vector<std::uint32_t> coming(units.size());
    for (std::uint32_t place = 0; place < coming.size(); ++place) coming[place] = place;
    std::shuffle(coming.begin(), coming.end(), random);
    while (!coming.empty() || !ready.empty()) {
      for (std::size_t more = random() % 8; more > 0 && !coming.empty(); --more) {
        choices.add(coming.back());
        ready.emplace(priority[coming.back()], coming.back());
        coming.pop_back();
      }
      const std::optional<std::uint32_t> best = walk(ready, memory);
      ASSERT_EQ(choices.find(memory), best) << "round " << round;
      if (!best) continue;
      if (*best != ready.begin()->second) ++forbidden;
      memory.take(*best);
      choices.remove(*best);
      ready.erase({priority[*best], *best});
    }
  }
  EXPECT_GT(forbidden, 1000);
}

const char* const kPair = "0F0 (0F1;0B0)OVERLAP_F_B 0B1";

/// The ids are those of the order: 0F0, 0F1, 0B0, 0B1.
TEST(ReadyPairs, HaveThePathThroughBothOps) {
  const ValidSchedule schedule = require_valid(traces::parse_schedule_text(kPair, "pair"));
  const Program program = lower_or_refuse(schedule, {});
  ASSERT_EQ(program.instructions[2].op.kind, OpKind::kBackward);
  // 0F1 leads to 0B1, 10 + 20, and with 0B0 to the end of that, 10 + 100.
  EXPECT_EQ(find_remaining_paths(program, std::vector<Nanos>{1, 10, 100, 20}),
            (std::vector<Nanos>{111, 110, 100, 20}));
}

TEST(ReadyPairs, AreBackwards) {
  const ValidSchedule schedule = require_valid(traces::parse_schedule_text(kPair, "pair"));
  const Program program = lower_or_refuse(schedule, {});
  const std::vector<Nanos> durations{1, 1, 1, 1};
  const ReadyRules rules =
      make_ready_rules({schedule, program, durations, MemoryModel{}}, ReadyPriority::kBackward);
  EXPECT_EQ(rules.priority[1], rules.priority[3]);
  EXPECT_LT(rules.priority[1], rules.priority[0]);
}

}  // namespace
}  // namespace bubblescope::tests
