// Sorts the ops of recorders.
#include "traces/measured/ops_in_order.h"

#include <algorithm>
#include <cstddef>

namespace bubblescope::traces {

void sort_by_start(OpsInOrder& ops) {
  std::stable_sort(ops.begin(), ops.end(), [](const ObservedOp* left, const ObservedOp* right) {
    return left->start < right->start;
  });
}

std::vector<OpsInOrder> computes_by_recorder(const ObservedTrace& trace) {
  std::vector<OpsInOrder> by_recorder(trace.recorders.size());
  for (const ObservedOp& observed : trace.ops)
    if (is_compute(observed.op.kind))
      by_recorder[static_cast<std::size_t>(observed.recorder)].push_back(&observed);
  for (OpsInOrder& ops : by_recorder) sort_by_start(ops);
  return by_recorder;
}

}  // namespace bubblescope::traces
