// The queue of a rank whose order is a hint: its rules, and its choices against a walk over all
// units.
#include "exec/runtime/ready_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sim/engine/memory_bound.h"

namespace bubblescope::tests {
namespace {

exec::ReadyQueue queue_of(const std::vector<MemoryStep>& memory,
                          const std::vector<std::int64_t>& priority) {
  std::vector<ReadyUnit> units;
  for (const MemoryStep& step : memory) {
    const auto id = static_cast<InstructionId>(units.size());
    units.push_back({id, id, step, false});
  }
  return {units, priority};
}

/// Takes everything, all of which is ready.
std::vector<InstructionId> take_all(exec::ReadyQueue queue, std::size_t size) {
  for (std::size_t place = 0; place < size; ++place) queue.add_ready_op(place, 0);
  std::vector<InstructionId> ran;
  while (const auto choice = queue.find(5)) {
    EXPECT_EQ(choice->time, 5);
    ran.push_back(queue.take(choice->place).first);
  }
  return ran;
}

TEST(ReadyQueue, PrefersByPriorityAndThenByPlace) {
  EXPECT_EQ(take_all(queue_of({{}, {}, {}}, {1, 0, 0}), 3), (std::vector<InstructionId>{1, 2, 0}));
}

TEST(ReadyQueue, TakesWhatStartsFirst) {
  exec::ReadyQueue queue = queue_of({{}, {}, {}}, {0, 0, 0});
  EXPECT_FALSE(queue.find(0));
  queue.add_ready_op(1, 30);
  queue.add_ready_op(2, 20);
  EXPECT_EQ(queue.find(0)->place, 2u);
  EXPECT_EQ(queue.find(0)->time, 20);
  EXPECT_EQ(queue.find(40)->place, 1u);  // both could have started by then
  queue.add_ready_op(0, 100);
  EXPECT_EQ(queue.find(40)->place, 1u);
  EXPECT_EQ(queue.find(100)->place, 0u);
  queue.rewind();
  EXPECT_FALSE(queue.find(100));
}

// 0 is preferred to 1, and 2 waits for 0.
TEST(ReadyQueue, KnowsWhatItWouldPrefer) {
  exec::ReadyQueue queue({{0, 0, {}, false}, {1, 1, {}, false}, {2, 2, {}, false}}, {1, 2, 0},
                         {{2}, {}, {}});
  queue.add_ready_op(1, 30);
  EXPECT_TRUE(queue.prefers_another(1));
  queue.add_ready_op(0, 100);
  EXPECT_FALSE(queue.prefers_another(1)) << "the better one is known to come later";
  queue.take(0);
  EXPECT_TRUE(queue.prefers_another(1)) << "2 waits for nothing that the rank runs next";
  queue.rewind();
  EXPECT_TRUE(queue.prefers_another(1));
  EXPECT_FALSE(queue.prefers_another(0));
}

TEST(ReadyQueue, WaitsForBothOpsOfAPair) {
  exec::ReadyQueue queue({{0, 1, {}, false}}, {0, 0});
  queue.add_ready_op(0, 10);
  EXPECT_FALSE(queue.find(0));
  queue.add_ready_op(0, 30);
  EXPECT_EQ(queue.find(0)->time, 30);
}

TEST(ReadyQueue, KeepsTheMemoryOfTheOrder) {
  // F0 F1 B0 F2 B1 B2: two at once.
  EXPECT_EQ(
      take_all(queue_of({{1, 1}, {1, 1}, {0, -1}, {1, 1}, {0, -1}, {0, -1}}, {0, 0, 1, 0, 1, 1}),
               6),
      (std::vector<InstructionId>{0, 1, 2, 3, 4, 5}));
}

TEST(ReadyQueue, RunsOptimizerStepsInTheirPlace) {
  const std::vector<ReadyUnit> units{{0, 0, {}, false}, {1, 1, {}, true}, {2, 2, {}, false}};
  EXPECT_EQ(take_all({units, {1, 0, 0}}, 3), (std::vector<InstructionId>{2, 0, 1}));
}

/// The same queue, which looks at every unit for every answer.
struct Walk {
  struct Unit {
    std::int64_t priority = 0;
    std::optional<Nanos> ready = {};
    std::vector<std::uint32_t> waits_for = {};
    bool keeps_place = false;
    bool is_taken = false;
  };

  bool prefers(std::size_t left, std::size_t right) const {
    if (units[left].priority != units[right].priority)
      return units[left].priority < units[right].priority;
    return left < right;
  }

  bool may_run(std::size_t place) const {
    if (units[place].is_taken) return false;
    if (!units[place].keeps_place) return memory.allows(place);
    return std::all_of(units.begin(), units.begin() + static_cast<std::ptrdiff_t>(place),
                       [](const Unit& before) { return before.is_taken; });
  }

  std::optional<exec::ReadyQueue::Choice> find(Nanos free) const {
    std::optional<exec::ReadyQueue::Choice> best;
    for (std::size_t place = 0; place < units.size(); ++place) {
      if (!units[place].ready || !may_run(place)) continue;
      const Nanos time = std::max(free, *units[place].ready);
      if (!best || time < best->time || (time == best->time && prefers(place, best->place)))
        best = {place, time};
    }
    return best;
  }

  bool prefers_another(std::size_t place) const {
    for (std::size_t other = 0; other < units.size(); ++other) {
      const std::vector<std::uint32_t>& waits = units[other].waits_for;
      if (!units[other].ready && may_run(other) && prefers(other, place) &&
          std::all_of(waits.begin(), waits.end(),
                      [&](std::uint32_t awaited) { return units[awaited].is_taken; }))
        return true;
    }
    return false;
  }

  std::vector<Unit> units;
  MemoryBound memory;
};

/// Units of which some wait for an earlier one of the rank, and some keep their place.
struct RandomLane {
  explicit RandomLane(std::mt19937& random) {
    const std::size_t size = 1 + random() % 30;
    followers.resize(size);
    walk.resize(size);
    for (std::uint32_t place = 0; place < size; ++place) {
      const bool keeps_place = random() % 9 == 0;
      const auto net = keeps_place ? 0 : static_cast<std::int64_t>(random() % 5) - 2;
      units.push_back({place, place, {std::max<std::int64_t>(net, 0), net}, keeps_place});
      priority.push_back(static_cast<std::int64_t>(random() % 4));
      walk[place].priority = priority.back();
      walk[place].keeps_place = keeps_place;
      if (place == 0 || random() % 3 != 0) continue;
      walk[place].waits_for.push_back(static_cast<std::uint32_t>(random() % place));
      followers[walk[place].waits_for.back()].push_back(place);
    }
  }

  std::vector<ReadyUnit> units;
  std::vector<std::int64_t> priority;
  exec::ReadyQueue::Followers followers;
  std::vector<Walk::Unit> walk;
};

/// Whether all units that it waits for on its rank have been taken, so that it may become ready.
bool may_become_ready(const Walk& walk, const Walk::Unit& unit) {
  return !unit.ready && std::all_of(unit.waits_for.begin(), unit.waits_for.end(),
                                    [&](std::uint32_t at) { return walk.units[at].is_taken; });
}

/// A queue and a walk that take the ops of a lane side by side.
class QueueBesideWalk {
 public:
  QueueBesideWalk(const RandomLane& lane, exec::ReadyQueue& queue)
      : queue_(queue), walk_{lane.walk, bound_of(lane.units)} {}

  /// Takes all units. Some of them become ready, time passes and both choose, again and again.
  void run(std::mt19937& random) {
    for (std::size_t taken = 0; taken < walk_.units.size();) {
      make_some_ready(random);
      free_ += static_cast<Nanos>(random() % 3);
      const auto expected = walk_.find(free_);
      const auto choice = queue_.find(free_);
      ASSERT_EQ(choice.has_value(), expected.has_value());
      if (!choice) continue;
      ASSERT_EQ(choice->place, expected->place);
      ASSERT_EQ(choice->time, expected->time);
      const bool prefers = walk_.prefers_another(choice->place);
      ASSERT_EQ(queue_.prefers_another(choice->place), prefers);
      preferred_ += prefers ? 1 : 0;
      if (random() % 2 == 0) continue;
      early_ += choice->time > free_ ? 1 : 0;
      queue_.take(choice->place);
      walk_.memory.take(choice->place);
      walk_.units[choice->place].is_taken = true;
      ++taken;
    }
  }

  int early() const { return early_; }

  int preferred() const { return preferred_; }

 private:
  void make_some_ready(std::mt19937& random) {
    for (std::uint32_t place = 0; place < walk_.units.size(); ++place) {
      if (random() % 6 != 0 || !may_become_ready(walk_, walk_.units[place])) continue;
      walk_.units[place].ready = free_ - 3 + static_cast<Nanos>(random() % 8);
      queue_.add_ready_op(place, *walk_.units[place].ready);
    }
  }

  exec::ReadyQueue& queue_;
  Walk walk_;
  Nanos free_ = 0;
  int early_ = 0;
  int preferred_ = 0;
};

TEST(ReadyQueue, ChoosesAsAWalkOverAllUnits) {
  std::mt19937 random(20261130);
  int early = 0;
  int preferred = 0;
  for (int round = 0; round < 600 && !testing::Test::HasFatalFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const RandomLane lane(random);
    exec::ReadyQueue queue(lane.units, lane.priority, lane.followers);
    for (int run = 0; run < 2; ++run, queue.rewind()) {
      QueueBesideWalk comparison(lane, queue);
      comparison.run(random);
      early += comparison.early();
      preferred += comparison.preferred();
    }
  }
  EXPECT_GT(early, 200);
  EXPECT_GT(preferred, 200);
}

}  // namespace
}  // namespace bubblescope::tests
