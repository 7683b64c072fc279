// The results of the published generators for costs, shapes and memory of their authors' tables, by
// an interpreter of their descriptions: ours are never longer with as much memory.
#include <gtest/gtest.h>

#include <string>

#include "sim/model/schedule_def.h"
#include "tests/support/measured_schedule.h"
#include "tests/support/sanitized.h"

namespace bubblescope::tests {
namespace {

constexpr std::int64_t kUnit = 1'000'000;  ///< caps are in millionths

/// A chunk held until W, and the zero-bubble paper's model of 6.2 billion parameters: F 303104,
/// I -172032, W -131072 parts.
enum Memory { kCounted, kWeighted };

struct Published {
  const char* name;
  std::int32_t ranks;
  std::int32_t microbatches;
  Nanos cost[4];  ///< F, I, W of a chunk and a message
  Memory memory;
  std::int32_t half_chunks;  ///< maximum memory of a rank, in halves of a chunk; 0: no cap
  Nanos span;
};

constexpr Published kPublished[] = {
    {"zb-auto", 16, 16, {11347000, 11248000, 8132000, 377000}, kWeighted, 48, 719887000},
    {"zb-auto", 16, 48, {18522000, 18086000, 9337000, 601000}, kCounted, 48, 2557759000},
    {"zb-auto", 8, 32, {11347000, 11248000, 8132000, 377000}, kWeighted, 24, 1021890000},
    {"zb-auto", 8, 24, {11347000, 11248000, 8132000, 377000}, kCounted, 24, 811439000},
    {"zb-auto", 8, 16, {10000, 20000, 20000, 2000}, kWeighted, 24, 928000},
    {"zb-auto", 8, 16, {11347000, 11248000, 8132000, 377000}, kWeighted, 24, 537253000},
    {"zb-auto", 8, 8, {20000, 20000, 20000, 10000}, kCounted, 24, 760000},
    {"zb-auto", 8, 32, {18522000, 18086000, 9337000, 601000}, kWeighted, 24, 1540049000},
    {"zb-auto", 16, 32, {10000, 20000, 20000, 2000}, kCounted, 48, 1880000},
    {"zb-auto", 16, 48, {11347000, 11248000, 8132000, 377000}, kWeighted, 48, 1564150000},
    {"v-auto", 16, 48, {10000, 10000, 20000, 0}, kWeighted, 0, 3840000},
    {"v-auto", 8, 8, {5209500, 5103500, 3857500, 408000}, kWeighted, 0, 271306000},
    {"v-auto", 8, 32, {5000, 10000, 10000, 2000}, kWeighted, 0, 1690000},
    {"v-auto", 16, 32, {5209500, 5103500, 3857500, 408000}, kWeighted, 0, 978744500},
    {"v-auto", 16, 48, {5000, 10000, 10000, 2000}, kWeighted, 0, 2597000},
    {"v-auto", 8, 8, {10000, 10000, 20000, 0}, kWeighted, 0, 710000},
    {"1f1b-v", 8, 16, {1000, 1000, 1000, 0}, kCounted, 24, 129000},
    {"1f1b-v", 8, 32, {10000, 20000, 10000, 0}, kCounted, 24, 3030000},
    {"1f1b-v", 16, 64, {10000, 10000, 5000, 0}, kCounted, 44, 4320000},
    {"1f1b-v", 16, 48, {14407000, 14380000, 9676000, 1610000}, kCounted, 44, 5410729000},
    {"1f1b-v", 8, 64, {10000, 10000, 10000, 10000}, kCounted, 24, 6810000},
    {"1f1b-v", 8, 16, {5209500, 5103500, 3857500, 408000}, kCounted, 24, 654397500},
    {"1f1b-v", 16, 48, {14859000, 14722000, 9963500, 527000}, kCounted, 44, 5265406000},
    {"1f1b-v", 8, 64, {14407000, 14380000, 9676000, 1610000}, kCounted, 24, 6277139000},
    {"1f1b-v", 16, 48, {5209500, 5103500, 3857500, 408000}, kCounted, 44, 1923292500},
    {"v-half", 8, 8, {5000, 10000, 10000, 2000}, kCounted, 20, 651000},
    {"v-half", 16, 32, {14859000, 14722000, 9963500, 527000}, kCounted, 36, 3278009000},
    {"v-half", 16, 32, {5673500, 5624000, 4066000, 377000}, kCounted, 36, 1281473000},
    {"v-half", 16, 48, {5000, 10000, 10000, 2000}, kCounted, 36, 3085000},
    {"v-half", 16, 16, {5000, 10000, 10000, 2000}, kCounted, 36, 1426000},
    {"v-half", 16, 32, {10000, 10000, 10000, 10000}, kCounted, 36, 3660000},
    {"v-min", 16, 32, {10000, 10000, 5000, 0}, kCounted, 24, 2505000},
    {"v-min", 8, 16, {10000, 10000, 5000, 0}, kCounted, 16, 1225000},
    {"v-min", 8, 24, {10000, 20000, 10000, 0}, kCounted, 16, 3230000},
    {"v-min", 16, 16, {14859000, 14722000, 9963500, 527000}, kCounted, 24, 2364178500},
    {"v-min", 8, 64, {10000, 20000, 10000, 0}, kCounted, 16, 8030000},
    {"v-min", 8, 32, {10000, 10000, 5000, 0}, kCounted, 16, 2185000},
};

ScheduleRequest request_for(const Published& row) {
  ScheduleRequest request;
  request.shape.ranks = row.ranks;
  request.shape.chunks = find_schedule(row.name).implied_chunks.value_or(1);
  request.shape.microbatches = row.microbatches;
  request.cost.per = UniformCost::Per::kChunk;
  request.cost.forward = row.cost[0];
  request.cost.input_grad = row.cost[1];
  request.cost.weight_grad = row.cost[2];
  request.cost.message = row.cost[3];
  if (row.memory == kWeighted)
    request.memory.unit = {303104 * kUnit, -172032 * kUnit, -131072 * kUnit};
  if (row.half_chunks > 0)
    request.memory.cap.assign(static_cast<std::size_t>(row.ranks),
                              row.half_chunks * request.memory.unit.forward / 2);
  return request;
}

TEST(PublishedGenerators, AreNeverShorterWithTheSameMemory) {
  for (const Published& row : kPublished) {
    if (kSanitized && row.ranks * row.microbatches > 256) continue;
    const ScheduleRequest request = request_for(row);
    const Schedule schedule = build_schedule(find_schedule(row.name), request);
    SCOPED_TRACE(std::string(row.name) + " p=" + std::to_string(row.ranks) +
                 " m=" + std::to_string(row.microbatches));
    EXPECT_LE(simulate_times(schedule, request.cost).max_span, row.span);
    const std::vector<std::int64_t> peaks = walk_peaks(schedule, request.memory.unit);
    for (std::size_t rank = 0; rank < request.memory.cap.size(); ++rank)
      EXPECT_LE(peaks[rank], request.memory.cap[rank]);
  }
}

}  // namespace
}  // namespace bubblescope::tests
