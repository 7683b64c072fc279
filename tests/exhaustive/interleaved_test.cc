// The interleaved schedules with every group size, including those that no framework accepts.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "schedules/virtual_stages.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "tests/support/measured_schedule.h"

namespace bubblescope::tests {
namespace {

ScheduleRequest make_request(std::int32_t ranks, std::int32_t chunks, std::int32_t microbatches,
                             std::int32_t group_size) {
  ScheduleRequest request;
  request.shape.ranks = ranks;
  request.shape.chunks = chunks;
  request.shape.microbatches = microbatches;
  request.shape.group_size = group_size;
  request.cost.forward = 12'000;
  request.cost.input_grad = 12'000;
  request.cost.weight_grad = 12'000;
  return request;
}

std::string text_of(const Shape& shape) {
  return "p=" + std::to_string(shape.ranks) + " v=" + std::to_string(shape.chunks) +
         " m=" + std::to_string(shape.microbatches) + " g=" + std::to_string(*shape.group_size);
}

void for_each_grouping(const std::function<void(const ScheduleRequest&)>& visit) {
  for (std::int32_t ranks = 1; ranks <= 6; ++ranks)
    for (std::int32_t chunks = 1; chunks <= 4; ++chunks)
      for (std::int32_t microbatches = 1; microbatches <= 3 * ranks + 1; ++microbatches)
        for (std::int32_t group_size = 1; group_size <= microbatches; ++group_size)
          visit(make_request(ranks, chunks, microbatches, group_size));
}

class EveryGrouping : public testing::TestWithParam<const char*> {};

TEST_P(EveryGrouping, IsLegalAndNeverDeadlocks) {
  const ScheduleDef& def = find_schedule(GetParam());
  for_each_grouping([&](const ScheduleRequest& request) {
    const Problems problems = validate(build_schedule(def, request));
    EXPECT_TRUE(problems.empty()) << text_of(request.shape) << ": " << to_string(problems.front());
  });
}

TEST_P(EveryGrouping, KeepsItsClaims) {
  const ScheduleDef& def = find_schedule(GetParam());
  int makespans = 0;
  for_each_grouping([&](ScheduleRequest request) {
    const Schedule schedule = build_schedule(def, request);
    for (const Nanos message : {0, 300, 3000}) {
      request.cost.message = message;
      const Claims claims = def.claims(request);
      EXPECT_EQ(claims.peak_chunks, walk_peaks(schedule, {})) << text_of(request.shape);
      if (!claims.makespan) continue;
      const Times times = simulate_times(schedule, request.cost);
      EXPECT_EQ(*claims.makespan, times.makespan) << text_of(request.shape);
      EXPECT_EQ(*claims.max_span, times.max_span) << text_of(request.shape);
      ++makespans;
    }
  });
  EXPECT_GT(makespans, 0);
}

INSTANTIATE_TEST_SUITE_P(Interleaved, EveryGrouping,
                         testing::Values("interleaved", "interleaved-zb"));

TEST(Groups, WarmUpAsMegatronWhereverTheyFillTheLoop) {
  // w = 2 (p-1-r) + (v-1) g is Megatron's warm-up before it is limited to m v.
  for_each_grouping([&](const ScheduleRequest& request) {
    const Shape& shape = request.shape;
    const std::int64_t visits = std::int64_t{shape.microbatches} * shape.chunks;
    if (!schedules::fill_loop(schedules::find_groups(request), shape)) return;
    for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
      const std::int64_t megatron =
          2 * (shape.ranks - 1 - rank) + (shape.chunks - 1) * *shape.group_size;
      EXPECT_EQ(std::min(visits, schedules::count_virtual_warmup(request, rank, 2)),
                std::min(visits, megatron))
          << text_of(shape) << " rank " << rank;
    }
  });
}

TEST(Interleaved, UnevenGroupsCostAtMostTheReference) {
  // F = 1, B = 2 for a whole rank, p = 4, v = 2: the table has T - 3m; (p-1) (F + B) / v = 4.5 is
  // the bubble of groups that fill the loop. From an independent simulator of Megatron's table.
  struct Row {
    std::int32_t microbatches;
    std::int32_t group_size;
    double bubble;
  };
  for (const Row& row : {Row{8, 4, 4.5},
                         {8, 8, 4.5},
                         {10, 5, 4.5},
                         {10, 6, 4.5},
                         {9, 5, 4.5},
                         {5, 5, 4.5},
                         {8, 5, 5.5},
                         {7, 4, 5.5},
                         {11, 4, 5.5},
                         {10, 4, 9.5},
                         {9, 4, 10},
                         {6, 4, 9.5},
                         {3, 3, 6}}) {
    const ScheduleRequest request = make_request(4, 2, row.microbatches, row.group_size);
    const Schedule schedule = build_schedule(find_schedule("interleaved"), request);
    const Nanos unit = request.cost.forward;
    const Nanos bubble =
        simulate_times(schedule, request.cost).makespan - 3 * unit * row.microbatches;
    EXPECT_EQ(static_cast<double>(bubble) / static_cast<double>(unit), row.bubble)
        << text_of(request.shape);
  }
}

}  // namespace
}  // namespace bubblescope::tests
