// Divides matrices into shards.
#include "exec/nccl/shards.h"

#include <algorithm>

namespace bubblescope::exec {

Shard shard_of(std::size_t entries, std::int32_t owner, std::int32_t owners) {
  const auto at = static_cast<std::size_t>(owner);
  const std::size_t min_count = entries / static_cast<std::size_t>(owners);
  const std::size_t longer = entries % static_cast<std::size_t>(owners);
  return {at * min_count + std::min(at, longer), min_count + (at < longer ? 1 : 0)};
}

std::vector<bool> find_gathered(const Schedule& schedule) {
  std::vector<bool> gathered(static_cast<std::size_t>(schedule.stages()), false);
  if (schedule.pipelines > 1) return gathered;
  for (const RankOrder& cells : schedule.posted)
    for (const Op& op : cells)
      if (op.kind == OpKind::kUnshard) gathered[static_cast<std::size_t>(op.stage)] = true;
  return gathered;
}

}  // namespace bubblescope::exec
