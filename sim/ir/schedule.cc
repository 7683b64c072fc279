// Answers questions about a schedule's stages and ops.
#include "sim/ir/schedule.h"

#include "sim/ir/posted_kinds.h"

namespace bubblescope::inline sim {

std::string_view name(Recompute recompute) {
  switch (recompute) {
    case Recompute::kNone: return "none";
    case Recompute::kSelective: return "selective";
    case Recompute::kFull: return "full";
  }
  return "?";
}

std::int64_t Schedule::op_count() const {
  std::int64_t count = 0;
  for (const RankOrder& ops : order) count += static_cast<std::int64_t>(ops.size());
  return count;
}

bool posts_messages(const Schedule& schedule) {
  return posts_any(schedule, [](OpKind kind) { return is_message(kind); });
}

std::vector<std::int32_t> chunk_of_stage(const Schedule& schedule) {
  std::vector<std::int32_t> seen(schedule.order.size(), 0);
  std::vector<std::int32_t> chunk;
  for (const std::int32_t rank : schedule.rank_of_stage) chunk.push_back(seen[rank]++);
  return chunk;
}

}  // namespace bubblescope::inline sim
