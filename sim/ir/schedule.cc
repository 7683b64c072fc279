// Placements and small questions about schedules.
#include "sim/ir/schedule.h"

#include <algorithm>

namespace bubblescope {

std::int64_t Schedule::op_count() const {
  std::int64_t count = 0;
  for (const RankOrder& ops : order) count += static_cast<std::int64_t>(ops.size());
  return count;
}

namespace {

bool posts_any(const Schedule& schedule, bool (*wanted)(OpKind)) {
  return std::any_of(schedule.posted.begin(), schedule.posted.end(), [=](const RankOrder& cells) {
    return std::any_of(cells.begin(), cells.end(), [=](const Op& op) { return wanted(op.kind); });
  });
}

}  // namespace

bool posts_messages(const Schedule& schedule) { return posts_any(schedule, is_message); }

bool posts_collectives(const Schedule& schedule) { return posts_any(schedule, is_collective); }

std::vector<std::int32_t> loop_placement(std::int32_t ranks, std::int32_t chunks) {
  std::vector<std::int32_t> rank_of_stage;
  for (std::int32_t stage = 0; stage < ranks * chunks; ++stage)
    rank_of_stage.push_back(stage % ranks);
  return rank_of_stage;
}

std::vector<std::int32_t> zigzag_placement(std::int32_t ranks, std::int32_t chunks) {
  std::vector<std::int32_t> rank_of_stage;
  for (std::int32_t stage = 0; stage < ranks * chunks; ++stage) {
    const std::int32_t step = stage % ranks;
    const bool downward = (stage / ranks) % 2 == 0;
    rank_of_stage.push_back(downward ? step : ranks - 1 - step);
  }
  return rank_of_stage;
}

std::vector<std::int32_t> bidirectional_placement(std::int32_t ranks) {
  return zigzag_placement(ranks, 2);
}

std::vector<std::int32_t> chunk_of_stage(const Schedule& schedule) {
  std::vector<std::int32_t> seen(schedule.order.size(), 0);
  std::vector<std::int32_t> chunk;
  for (const std::int32_t rank : schedule.rank_of_stage) chunk.push_back(seen[rank]++);
  return chunk;
}

void append_pair(RankOrder& order, Op first, Op second) {
  first.pairing = Pairing::kFirst;
  second.pairing = Pairing::kSecond;
  order.push_back(first);
  order.push_back(second);
}

}  // namespace bubblescope
