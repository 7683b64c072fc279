// Searches a schedule for a kind of op.
#include "sim/ir/op_kinds.h"

#include <algorithm>

namespace bubblescope::inline sim {

bool has_kind(const std::vector<RankOrder>& lists, OpKind kind) {
  return std::any_of(lists.begin(), lists.end(), [kind](const RankOrder& ops) {
    return std::any_of(ops.begin(), ops.end(), [kind](const Op& op) { return op.kind == kind; });
  });
}

bool has_kind(const Schedule& schedule, OpKind kind) { return has_kind(schedule.order, kind); }

bool has_pairs(const Schedule& schedule) {
  return std::any_of(schedule.order.begin(), schedule.order.end(), [](const RankOrder& ops) {
    return std::any_of(ops.begin(), ops.end(),
                       [](const Op& op) { return op.pairing != Pairing::kAlone; });
  });
}

}  // namespace bubblescope::inline sim
