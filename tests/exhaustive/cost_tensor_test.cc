// Costs that differ by micro-batch and slice: lists of equal values change nothing, and random ones
// agree with a plain lookup, with the event loop and with the bounds.
#include "sim/model/cost_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "sim/analysis/lower_bound.h"
#include "sim/analysis/memory_curve.h"
#include "sim/engine/simulate.h"
#include "sim/model/cost_lists.h"
#include "tests/support/measured_schedule.h"
#include "tests/support/random_schedule.h"

namespace bubblescope::tests {
namespace {

/// Keys of times that any schedule may have, and of bytes.
constexpr CostKey kTimes[] = {CostKey::kForward,    CostKey::kBackward,  CostKey::kInputGrad,
                              CostKey::kWeightGrad, CostKey::kRecompute, CostKey::kOverlappedPair};
constexpr CostKey kBytes[] = {CostKey::kSaved, CostKey::kCheckpoint, CostKey::kReleasedByInputGrad};

Schedule schedule_of(std::uint32_t seed) {
  RandomTraits traits;
  traits.slices = seed % 3 == 1;
  traits.recompute = seed % 4 == 2;
  return random_schedule(seed, traits);
}

/// A value that keeps all conditions: pairs take at least as long as their forward, and nothing
/// releases more than it saves.
std::int64_t random_value(CostKey key, std::mt19937& random) {
  const auto value = static_cast<std::int64_t>(random() % 100);
  if (key == CostKey::kOverlappedPair) return 400 + value;
  return key == CostKey::kSaved ? 100 + value : value;
}

/// The same random values for all micro-batches of a stage.
CostTable shared_table(const Schedule& schedule, std::mt19937& random) {
  CostTable table;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    StageEntry& entry = table.stages.emplace_back();
    for (const CostKey key : kTimes) set_value(entry, key, random_value(key, random));
    for (const CostKey key : kBytes) set_value(entry, key, random_value(key, random));
  }
  table.message = {7, 50, {{0, 16.0}}};
  return table;
}

/// The value that a shared table has for a key.
std::int64_t value_of(const StageEntry& entry, CostKey key) {
  switch (key) {
    case CostKey::kForward: return entry.forward;
    case CostKey::kBackward: return *entry.backward;
    case CostKey::kInputGrad: return *entry.input_grad;
    case CostKey::kWeightGrad: return *entry.weight_grad;
    case CostKey::kRecompute: return *entry.recompute;
    case CostKey::kOverlappedPair: return *entry.overlapped_pair;
    case CostKey::kSaved: return entry.activation_bytes->forward;
    case CostKey::kReleasedByInputGrad: return -entry.activation_bytes->input_grad;
    case CostKey::kCheckpoint: return *entry.checkpoint;
    default: return 0;
  }
}

/// The same table with lists of equal values, and message sizes of stages.
CostTable with_equal_lists(CostTable table, const Schedule& schedule) {
  const auto microbatches = schedule.shape.microbatches;
  for (StageEntry& entry : table.stages) {
    std::vector<CostList>& lists = table.lists.emplace_back();
    for (const auto& keys : {std::vector<CostKey>(std::begin(kTimes), std::end(kTimes)),
                             std::vector<CostKey>(std::begin(kBytes), std::end(kBytes))})
      for (const CostKey key : keys)
        lists.push_back({key, microbatches, 0,
                         std::vector<std::int64_t>(static_cast<std::size_t>(microbatches),
                                                   value_of(entry, key))});
    entry.message_bytes = table.message.bytes;
    lists.push_back(
        {CostKey::kMessageBytes, microbatches, 0,
         std::vector<std::int64_t>(static_cast<std::size_t>(microbatches), table.message.bytes)});
  }
  return table;
}

std::vector<Bytes> peaks_of(const ValidSchedule& schedule, const Program& program,
                            const Timeline& timeline, const MemoryModel& memory) {
  std::vector<Bytes> bytes;
  for (const Peak& peak : find_peaks(schedule, program, timeline, memory))
    bytes.push_back(*peak.bytes);
  return bytes;
}

TEST(CostTensor, OfEqualValuesIsTheScalarPath) {
  std::mt19937 random(20261122);
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    const Schedule schedule = schedule_of(seed);
    const CostTable shared = shared_table(schedule, random);
    const CostTable listed = with_equal_lists(shared, schedule);
    const Program program = lower_or_throw(schedule);
    const Timeline expected = simulate(program, make_cost_model(shared, schedule));
    const CostModel costs = make_cost_model(listed, schedule);
    const Timeline found = simulate(program, costs);
    ASSERT_FALSE(costs.by_microbatch.empty());
    ASSERT_EQ(found.start, expected.start) << "seed " << seed;
    ASSERT_EQ(found.end, expected.end) << "seed " << seed;
    ASSERT_EQ(price_bytes(program, costs), price_bytes(program, make_cost_model(shared, schedule)));
    ASSERT_EQ(lower_bound(program, found), lower_bound(program, expected));
    const ValidSchedule valid = require_valid(schedule);
    ASSERT_EQ(peaks_of(valid, program, found, make_memory_model(listed, schedule)),
              peaks_of(valid, program, expected, make_memory_model(shared, schedule)))
        << "seed " << seed;
  }
}

/// One value of a test's own table, by key, stage, micro-batch and slice.
using Plain = std::map<std::tuple<CostKey, std::int32_t, std::int32_t, std::int32_t>, std::int64_t>;

/// Random lists for all keys, by micro-batch and slice, and the same values as a plain map.
CostTable random_lists(const Schedule& schedule, std::mt19937& random, Plain& plain) {
  const Shape& shape = schedule.shape;
  CostTable table = shared_table(schedule, random);
  std::vector<CostKey> keys(std::begin(kTimes), std::end(kTimes));
  keys.insert(keys.end(), {CostKey::kMessageBytes, CostKey::kMessageLatency, CostKey::kSaved,
                           CostKey::kCheckpoint});
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    StageEntry& entry = table.stages[static_cast<std::size_t>(stage)];
    std::vector<CostList>& lists = table.lists.emplace_back();
    set_value(entry, CostKey::kReleasedByInputGrad, 0);
    for (const CostKey key : keys) {
      CostList& list = lists.emplace_back(CostList{key, shape.microbatches, shape.slices, {}});
      for (std::int32_t microbatch = 0; microbatch < shape.microbatches; ++microbatch)
        for (std::int32_t slice = 0; slice < shape.slices; ++slice) {
          list.values.push_back(random_value(key, random));
          plain[{key, stage, microbatch, slice}] = list.values.back();
        }
      set_value(entry, key, list.mean());
    }
  }
  return table;
}

std::int64_t plain_duration(const Plain& plain, const Schedule& schedule, const Op& op) {
  const auto value = [&](CostKey key, std::int32_t stage) {
    return plain.at({key, stage, op.microbatch, op.slice});
  };
  const auto message = [&](std::int32_t boundary) {
    // 16 Gb/s are 2 bytes per nanosecond.
    return value(CostKey::kMessageLatency, boundary) +
           (value(CostKey::kMessageBytes, boundary) + 1) / 2;
  };
  switch (op.kind) {
    case OpKind::kForward: return value(CostKey::kForward, op.stage);
    case OpKind::kBackward: return value(CostKey::kBackward, op.stage);
    case OpKind::kInputGrad: return value(CostKey::kInputGrad, op.stage);
    case OpKind::kWeightGrad: return value(CostKey::kWeightGrad, op.stage);
    case OpKind::kRecompute: return value(CostKey::kRecompute, op.stage);
    case OpKind::kSendForward: return message(op.stage);
    case OpKind::kSendBackward: return message(op.stage - 1);
    default: ADD_FAILURE() << to_string(op) << " in " << schedule.name; return 0;
  }
}

// The second half of a pair takes what the pair's time leaves.
TEST(CostTensor, OfRandomValuesIsAPlainLookup) {
  std::mt19937 random(20261123);
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    const Schedule schedule = schedule_of(seed);
    Plain plain;
    const CostTable table = random_lists(schedule, random, plain);
    const Program program = lower_or_throw(schedule);
    const std::vector<Nanos> durations = price(program, make_cost_model(table, schedule));
    std::vector<Op> first_of_pair(static_cast<std::size_t>(program.ranks));
    for (InstructionId id = 0; id < program.size(); ++id) {
      const Instruction& instruction = program.instructions[id];
      const Op& op = instruction.op;
      Op& first = first_of_pair[static_cast<std::size_t>(instruction.rank)];
      if (op.pairing == Pairing::kFirst) first = op;
      const Nanos expected =
          op.pairing == Pairing::kSecond
              ? plain.at({CostKey::kOverlappedPair, first.stage, first.microbatch, first.slice}) -
                    plain.at({CostKey::kForward, first.stage, first.microbatch, first.slice})
              : plain_duration(plain, schedule, op);
      ASSERT_EQ(durations[id], expected) << "seed " << seed << ", " << to_string(op);
    }
  }
}

TEST(CostTensor, OfRandomValuesAgreesWithTheEventLoopAndTheBounds) {
  std::mt19937 random(20261124);
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    const Schedule schedule = schedule_of(seed);
    Plain plain;
    const CostTable table = random_lists(schedule, random, plain);
    const Program program = lower_or_throw(schedule);
    Traffic traffic;
    traffic.fixed = price(program, make_cost_model(table, schedule));
    const Timeline found = simulate(program, traffic.fixed);
    const Timeline expected = simulate_shared(program, traffic).timeline;
    ASSERT_EQ(found.start, expected.start) << "seed " << seed;
    ASSERT_EQ(found.end, expected.end) << "seed " << seed;
    ASSERT_LE(lower_bound(program, found), *std::max_element(found.end.begin(), found.end.end()));
  }
}

// Without recomputation a rank holds what its forwards saved and its backwards have not released;
// in inference nothing is kept for a backward.
TEST(CostTensor, OfRandomBytesGivesThePeakOfAPlainSum) {
  std::mt19937 random(20261125);
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    RandomTraits traits;
    traits.slices = seed % 2 == 1;
    const Schedule schedule = random_schedule(seed, traits);
    Plain plain;
    const CostTable table = random_lists(schedule, random, plain);
    const Program program = lower_or_throw(schedule);
    const Timeline timeline = simulate(program, make_cost_model(table, schedule));
    std::vector<Bytes> expected;
    for (const RankOrder& order : schedule.order) {
      Bytes held = 0;
      Bytes peak = 0;
      for (const Op& op : order) {
        const Bytes saved = plain.at({CostKey::kSaved, op.stage, op.microbatch, op.slice});
        if (op.kind == OpKind::kForward) held += saved;
        if (makes_weight_grad(op.kind)) held -= saved;
        peak = std::max(peak, held);
        if (schedule.forward_only) held = 0;
      }
      expected.push_back(peak);
    }
    ASSERT_EQ(
        peaks_of(require_valid(schedule), program, timeline, make_memory_model(table, schedule)),
        expected)
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace bubblescope::tests
