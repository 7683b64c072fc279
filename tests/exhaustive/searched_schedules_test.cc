// The searched schedules keep their caps, are no longer than the handcrafted ones or than those
// with less memory, optimal if all orders can be tried, and deterministic.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/engine/simulate.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "tests/support/measured_schedule.h"
#include "tests/support/sanitized.h"
#include "tests/support/span_oracle.h"

namespace bubblescope::tests {
namespace {

constexpr std::int64_t kUnit = 1'000'000;  ///< caps are in millionths
constexpr unsigned kSeed = 20240607;

struct Draw {
  std::mt19937 engine{kSeed};

  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(engine() % static_cast<unsigned>(most - least + 1));
  }
};

ScheduleRequest shaped(std::int32_t ranks, std::int32_t microbatches, std::int32_t chunks) {
  ScheduleRequest request;
  request.shape.ranks = ranks;
  request.shape.chunks = chunks;
  request.shape.microbatches = microbatches;
  request.cost.per = UniformCost::Per::kChunk;
  return request;
}

/// Costs of 1 to 30, latency up to 8; memory released at I, at W or at both; caps per rank of at
/// least one micro-batch.
ScheduleRequest drawn(Draw& draw, std::int32_t chunks) {
  const auto ranks = static_cast<std::int32_t>(draw.between(1, 6));
  ScheduleRequest request =
      shaped(ranks, static_cast<std::int32_t>(draw.between(1, 3 * ranks)), chunks);
  request.cost.forward = draw.between(1, 30);
  request.cost.input_grad = draw.between(1, 30);
  request.cost.weight_grad = draw.between(1, 30);
  request.cost.message = draw.between(0, 8);
  const std::int64_t at_gradient = draw.between(0, 10) * kUnit / 10;
  request.memory.unit = {kUnit, -at_gradient, at_gradient - kUnit};
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    request.memory.cap.push_back(draw.between(chunks * kUnit, 2 * chunks * ranks * kUnit));
  return request;
}

std::string text_of(const ScheduleRequest& request) {
  std::string text = "seed " + std::to_string(kSeed) +
                     ", p=" + std::to_string(request.shape.ranks) +
                     " m=" + std::to_string(request.shape.microbatches) +
                     " F=" + std::to_string(request.cost.forward) +
                     " I=" + std::to_string(request.cost.input_grad) +
                     " W=" + std::to_string(request.cost.weight_grad) +
                     " c=" + std::to_string(request.cost.message) + " memory";
  const MemoryDelta& unit = request.memory.unit;
  for (const std::int64_t delta : {unit.forward, unit.input_grad, unit.weight_grad})
    text += ' ' + std::to_string(delta);
  text += " caps";
  for (const std::int64_t cap : request.memory.cap) text += ' ' + std::to_string(cap);
  return text;
}

Schedule built(const std::string& name, const ScheduleRequest& request) {
  return build_schedule(find_schedule(name), request);
}

Nanos span_of(const std::string& name, const ScheduleRequest& request) {
  return simulate_times(built(name, request), request.cost).max_span;
}

TEST(SearchedSchedules, KeepTheirCapsWhateverTheCosts) {
  Draw draw;
  for (int turn = 0; turn < random_cases(60); ++turn)
    for (const std::string name : {"zb-auto", "v-auto"}) {
      const ScheduleRequest request = drawn(draw, name == "v-auto" ? 2 : 1);
      const Schedule schedule = built(name, request);
      EXPECT_TRUE(validate(schedule).empty()) << name << ' ' << text_of(request);
      const std::vector<std::int64_t> peaks = walk_peaks(schedule, request.memory.unit);
      for (std::size_t rank = 0; rank < peaks.size(); ++rank)
        EXPECT_LE(peaks[rank], request.memory.cap[rank]) << name << ' ' << text_of(request);
    }
}

/// A step of at most three ranks. Some have more than 2p + 2 micro-batches: those of a V are
/// searched through a brief step.
ScheduleRequest drawn_for_any_cap(Draw& draw, std::int32_t chunks) {
  const auto ranks = static_cast<std::int32_t>(draw.between(1, 3));
  ScheduleRequest request =
      shaped(ranks, static_cast<std::int32_t>(draw.between(1, 3 * ranks + 2)), chunks);
  request.cost.forward = draw.between(1, 30);
  request.cost.input_grad = draw.between(0, 30);
  request.cost.weight_grad = draw.between(0, 30);
  request.cost.message = draw.between(0, 8);
  return request;
}

/// Ascending caps of any fraction, from one micro-batch to more than a rank needs.
std::vector<std::int64_t> drawn_caps(Draw& draw, const ScheduleRequest& request) {
  const std::int32_t chunks = request.shape.chunks;
  std::vector<std::int64_t> caps;
  for (int drawn = 0; drawn < 8; ++drawn)
    caps.push_back(draw.between(chunks * kUnit, (2 * request.shape.ranks + 1) * chunks * kUnit));
  std::sort(caps.begin(), caps.end());
  return caps;
}

void expect_no_longer_spans(const std::string& name, ScheduleRequest request,
                            const std::vector<std::int64_t>& ascending_caps) {
  std::optional<Nanos> before;
  for (const std::int64_t cap : ascending_caps) {
    request.memory.cap.assign(static_cast<std::size_t>(request.shape.ranks), cap);
    const Nanos span = span_of(name, request);
    EXPECT_LE(span, before.value_or(span)) << name << ' ' << text_of(request);
    before = std::min(span, before.value_or(span));
  }
}

// Memory is released at W, half of it at I, or any part of it.
TEST(SearchedSchedules, AreNoLongerWithMoreMemory) {
  Draw draw;
  for (int turn = 0; turn < random_cases(8); ++turn)
    for (const std::string name : {"zb-auto", "v-auto"}) {
      ScheduleRequest request = drawn_for_any_cap(draw, name == "v-auto" ? 2 : 1);
      const std::int64_t at_gradient = draw.between(0, 100) * kUnit / 100;
      for (const MemoryDelta& unit : {MemoryDelta{kUnit, 0, -kUnit},
                                      {kUnit, -kUnit / 2, -kUnit / 2},
                                      {kUnit, -at_gradient, at_gradient - kUnit}}) {
        request.memory.unit = unit;
        expect_no_longer_spans(name, request, drawn_caps(draw, request));
      }
    }
}

TEST(SearchedSchedules, AreNoLongerWithMoreMemoryThatInputGradientsTake) {
  ScheduleRequest request = shaped(3, 9, 2);
  request.cost.forward = 26;
  request.cost.input_grad = 3;
  request.cost.weight_grad = 5;
  request.cost.message = 14;
  request.memory.unit = {0, kUnit, -kUnit};
  std::vector<std::int64_t> caps;
  for (std::int64_t chunks = 2; chunks <= 14; ++chunks) caps.push_back(chunks * kUnit);
  expect_no_longer_spans("v-auto", request, caps);
}

TEST(SearchedSchedules, RefuseCapsBelowOneMicrobatch) {
  ScheduleRequest request = shaped(3, 4, 2);
  request.memory.cap = {2 * kUnit, 2 * kUnit - 1, 2 * kUnit};
  const std::vector<std::string> reasons = find_schedule("v-auto").refuse(request);
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_EQ(reasons[0], "rank 1 may hold 1.999999, but one micro-batch alone needs 2; raise `cap`");
}

TEST(SearchedSchedules, AreNoLongerThanHandcraftedOnesWithTheSameMemory) {
  Draw draw;
  for (int turn = 0; turn < 30; ++turn)
    for (const auto& [hand, name, chunks] :
         {std::tuple{"zb-h1", "zb-auto", 1}, {"zb-h2", "zb-auto", 1}, {"zb-v", "v-auto", 2}}) {
      ScheduleRequest request = drawn(draw, chunks);
      request.memory = {};
      const Schedule by_hand = built(hand, request);
      request.memory.cap = walk_peaks(by_hand, request.memory.unit);
      EXPECT_LE(span_of(name, request), simulate_times(by_hand, request.cost).max_span)
          << name << " and " << hand << ' ' << text_of(request);
    }
}

TEST(SearchedSchedules, ReachTheOptimumOfSmallShapes) {
  for (const auto& [ranks, max_microbatches] : {std::pair{2, 6}, {3, 6}, {4, 6}, {5, 5}})
    for (std::int32_t microbatches = 1; microbatches <= max_microbatches; ++microbatches)
      for (std::int32_t cap = 1; cap <= 2 * ranks - 1; ++cap) {
        ScheduleRequest request = shaped(ranks, microbatches, 1);
        request.cost.forward = request.cost.input_grad = request.cost.weight_grad = 1;
        request.memory.cap.assign(static_cast<std::size_t>(ranks), cap * kUnit);
        EXPECT_EQ(span_of("zb-auto", request), shortest_unit_span(ranks, microbatches, cap))
            << text_of(request);
      }
}

TEST(SearchedSchedules, AreTheSameEveryTime) {
  Draw draw;
  for (const std::string name : {"zb-auto", "v-auto"}) {
    const ScheduleRequest request = drawn(draw, name == "v-auto" ? 2 : 1);
    EXPECT_EQ(built(name, request).order, built(name, request).order) << text_of(request);
  }
}

TEST(SearchedSchedules, ReadTheCostsOfEachStage) {
  ScheduleRequest request = shaped(3, 6, 1);
  CostModel costs;
  for (const Nanos slow : {1, 4, 2}) costs.stages.push_back({slow, 2 * slow, slow, slow, slow});
  request.stage_costs = costs;
  const Schedule schedule = built("zb-auto", request);
  const Program program = lower_or_throw(schedule);
  // The slowest stage is never idle: 6 micro-batches of 3 x 4.
  EXPECT_EQ(times_of(program, simulate(program, costs)).max_span, 72);
}

/// Maximum chunks held: V-Min 2 floor((p+4)/3), V-Half 2 floor((p+2)/2), 1F1B-V 2 ceil(2p/3), plus
/// one if 3 divides p.
TEST(SearchedSchedules, HoldTheMemoryOfTheirNames) {
  for (std::int32_t ranks = 2; ranks <= 8; ++ranks)
    for (const auto& [name, chunks] : {std::pair{"v-min", 2 * ((ranks + 4) / 3)},
                                       {"v-half", 2 * ((ranks + 2) / 2)},
                                       {"1f1b-v", 2 * ((2 * ranks + 2) / 3) + (ranks % 3 == 0)}}) {
      const ScheduleRequest request = shaped(ranks, 3 * ranks, 2);
      const std::vector<std::int64_t> peaks = walk_peaks(built(name, request), MemoryDelta{});
      EXPECT_EQ(*std::max_element(peaks.begin(), peaks.end()), chunks) << name << " p=" << ranks;
    }
}

}  // namespace
}  // namespace bubblescope::tests
