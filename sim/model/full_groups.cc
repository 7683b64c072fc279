// Tries the sizes of groups, from the number of ranks on.
#include "sim/model/full_groups.h"

#include <algorithm>

namespace bubblescope::inline sim {

std::optional<std::int32_t> find_full_groups(const ScheduleDef& def, const Shape& shape,
                                             Profile profile) {
  const bool is_free = profile == Profile::kNone || profile == Profile::kMegatron;
  if (!def.needs_full_groups || !is_free || shape.chunks < 2) return {};
  const auto delays = [&](std::int32_t size) {
    const std::int32_t last = shape.microbatches % size;
    return last != 0 && last < shape.ranks;
  };
  if (!delays(shape.group_size.value_or(std::min(shape.ranks, shape.microbatches)))) return {};
  std::int32_t size = shape.ranks;
  while (size < shape.microbatches && delays(size)) ++size;
  return std::min(size, shape.microbatches);
}

}  // namespace bubblescope::inline sim
