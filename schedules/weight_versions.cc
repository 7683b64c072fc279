// Counts updates.
#include "schedules/weight_versions.h"

#include <algorithm>

namespace bubblescope::schedules {

std::vector<WeightUse> assign_weight_versions(const RankOrder& ops, UpdateRule rule) {
  std::vector<WeightUse> uses;
  uses.reserve(ops.size());
  std::optional<std::size_t> previous_backward;
  for (const Op& op : ops) {
    const std::int32_t update = op.microbatch / rule.microbatches;
    uses.push_back({std::max(0, update - rule.delay), {}});
    if (op.kind != OpKind::kBackward) continue;
    // An update follows the last backward before those of the next update.
    uses.back().written = update + 1;
    if (previous_backward && uses[*previous_backward].written == update + 1)
      uses[*previous_backward].written.reset();
    previous_backward = uses.size() - 1;
  }
  return uses;
}

}  // namespace bubblescope::schedules
