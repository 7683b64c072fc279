// Looks for times between micro-batches in the orders of all ranks.
#include "traces/measured/running_microbatches.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "traces/measured/ops_in_order.h"

namespace bubblescope::traces {

namespace {

/// Whether all compute ops are numbered ones of a single step that is only counted.
bool is_one_counted_step(const ObservedTrace& trace) {
  return std::all_of(trace.ops.begin(), trace.ops.end(), [](const ObservedOp& observed) {
    return !is_compute(observed.op.kind) ||
           (observed.step_is_counted && observed.numbered && observed.step == 0);
  });
}

bool has_backwards(const ObservedTrace& trace) {
  return std::any_of(trace.ops.begin(), trace.ops.end(),
                     [](const ObservedOp& observed) { return gives_input_grad(observed.op.kind); });
}

/// The micro-batches before whose first op all ops of smaller ones have run on a rank.
std::set<std::int32_t> find_starts(const OpsInOrder& ops) {
  std::set<std::int32_t> starts;
  std::vector<std::int32_t> smallest_after(ops.size());
  for (std::size_t at = ops.size(); at-- > 0;) {
    const std::int32_t own = ops[at]->op.microbatch;
    smallest_after[at] = at + 1 == ops.size() ? own : std::min(own, smallest_after[at + 1]);
  }
  std::int32_t largest = -1;
  for (std::size_t at = 0; at < ops.size(); ++at) {
    if (smallest_after[at] > largest) starts.insert(smallest_after[at]);
    largest = std::max(largest, ops[at]->op.microbatch);
  }
  return starts;
}

/// The first micro-batch of every step.
std::vector<std::int32_t> find_common_starts(const std::vector<OpsInOrder>& recorders) {
  std::vector<std::int32_t> common;
  bool is_first = true;
  for (const OpsInOrder& ops : recorders) {
    const std::set<std::int32_t> own = find_starts(ops);
    std::vector<std::int32_t> both;
    if (is_first)
      both.assign(own.begin(), own.end());
    else
      std::set_intersection(common.begin(), common.end(), own.begin(), own.end(),
                            std::back_inserter(both));
    common = std::move(both);
    is_first = false;
  }
  return common;
}

/// The number of micro-batches of every step.
std::vector<std::size_t> count_microbatches(const std::vector<OpsInOrder>& recorders,
                                            const std::vector<std::int32_t>& starts) {
  std::set<std::int32_t> all;
  for (const OpsInOrder& ops : recorders)
    for (const ObservedOp* op : ops) all.insert(op->op.microbatch);
  std::vector<std::size_t> counts;
  for (std::size_t step = 0; step < starts.size(); ++step) {
    const auto end = step + 1 < starts.size() ? all.lower_bound(starts[step + 1]) : all.end();
    counts.push_back(static_cast<std::size_t>(std::distance(all.lower_bound(starts[step]), end)));
  }
  return counts;
}

/// Whether these are steps of one size above 1, but for the first and the last of several.
bool are_steps(const std::vector<std::size_t>& counts) {
  if (counts.size() < 2) return false;
  if (counts.size() == 2 && counts.front() != counts.back()) return false;
  const std::size_t usual = *std::max_element(counts.begin(), counts.end());
  if (usual < 2) return false;
  return std::all_of(std::next(counts.begin()), std::prev(counts.end()),
                     [usual](std::size_t count) { return count == usual; });
}

}  // namespace

ObservedTrace split_running_microbatches(ObservedTrace trace) {
  if (!is_one_counted_step(trace) || !has_backwards(trace)) return trace;
  std::vector<OpsInOrder> recorders = computes_by_recorder(trace);
  std::erase_if(recorders, [](const OpsInOrder& ops) { return ops.empty(); });
  if (recorders.size() < 2) return trace;
  const std::vector<std::int32_t> starts = find_common_starts(recorders);
  if (!are_steps(count_microbatches(recorders, starts))) return trace;
  for (ObservedOp& observed : trace.ops)
    if (observed.numbered)  // messages may precede the first op
      observed.step = std::max<std::int64_t>(
          0, std::upper_bound(starts.begin(), starts.end(), observed.op.microbatch) -
                 starts.begin() - 1);
  return trace;
}

}  // namespace bubblescope::traces
