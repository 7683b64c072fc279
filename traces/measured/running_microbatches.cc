// Looks for times between micro-batches in the orders of all ranks.
#include "traces/measured/running_microbatches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/ir/quantile.h"
#include "traces/measured/ops_in_order.h"
#include "traces/measured/time_span.h"

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

using Numbers = std::set<std::int32_t>;

template <class Condition>
Numbers list_numbers(const std::vector<OpsInOrder>& recorders, Condition condition) {
  Numbers numbers;
  for (const OpsInOrder& ops : recorders)
    for (const ObservedOp* op : ops)
      if (condition(op->op.kind)) numbers.insert(op->op.microbatch);
  return numbers;
}

Numbers list_numbers(const std::vector<OpsInOrder>& recorders) {
  return list_numbers(recorders, [](OpKind) { return true; });
}

/// The starts of steps that this rank allows: it must have run all ops of smaller micro-batches
/// before the first op of the step.
Numbers without_those_in_flight(Numbers starts, const OpsInOrder& ops) {
  std::vector<std::int32_t> smallest_after(ops.size());
  for (std::size_t at = ops.size(); at-- > 0;) {
    const std::int32_t own = ops[at]->op.microbatch;
    smallest_after[at] = at + 1 == ops.size() ? own : std::min(own, smallest_after[at + 1]);
  }
  std::int32_t largest = ops.front()->op.microbatch;
  for (std::size_t at = 0; at + 1 < ops.size(); ++at) {
    largest = std::max(largest, ops[at]->op.microbatch);
    const std::int32_t smallest = smallest_after[at + 1];
    if (smallest < largest) starts.erase(starts.upper_bound(smallest), starts.upper_bound(largest));
  }
  return starts;
}

/// The first micro-batch of every step. One that no rank runs backward is in flight until the end,
/// and one that no rank runs forward since the beginning.
Numbers find_starts(const std::vector<OpsInOrder>& recorders) {
  const Numbers all = list_numbers(recorders);
  const Numbers forward =
      list_numbers(recorders, [](OpKind kind) { return kind == OpKind::kForward; });
  const Numbers backward = list_numbers(recorders, gives_input_grad);
  Numbers starts = all;
  for (auto own = std::next(all.begin()); own != all.end(); ++own)
    if (!backward.contains(*std::prev(own)) || !forward.contains(*own)) starts.erase(*own);
  for (const OpsInOrder& ops : recorders) starts = without_those_in_flight(std::move(starts), ops);
  return starts;
}

/// The first micro-batch of every step where there are only forwards: all smaller ones must have
/// passed all ranks before it, by their common clock.
Numbers find_starts_of_forwards(const std::vector<OpsInOrder>& recorders) {
  std::map<std::int32_t, TimeSpan> spans;
  for (const OpsInOrder& ops : recorders)
    for (const ObservedOp* op : ops)
      widen(spans.emplace(op->op.microbatch, TimeSpan{op->start, op->end}).first->second, *op);
  std::map<std::int32_t, Nanos> first_after;  // of this micro-batch and all larger ones
  Nanos first = std::numeric_limits<Nanos>::max();
  for (auto own = spans.rbegin(); own != spans.rend(); ++own) {
    first = std::min(first, own->second.start);
    first_after[own->first] = first;
  }
  Numbers starts;
  Nanos last = std::numeric_limits<Nanos>::min();
  for (const auto& [number, span] : spans) {
    if (last <= first_after.at(number)) starts.insert(number);
    last = std::max(last, span.end);
  }
  return starts;
}

/// The micro-batches before which each rank pauses for longer than most of its ops take.
Numbers find_common_pauses(const std::vector<OpsInOrder>& recorders) {
  Numbers common = list_numbers(recorders);
  const std::int32_t smallest = *common.begin();
  for (const OpsInOrder& ops : recorders) {
    std::vector<Nanos> lengths;
    for (const ObservedOp* op : ops) lengths.push_back(op->end - op->start);
    const Nanos usual = quantile(std::move(lengths), 50);
    Numbers own{smallest};
    for (std::size_t at = 1; at < ops.size(); ++at)
      if (ops[at]->start - ops[at - 1]->end > usual) own.insert(ops[at]->op.microbatch);
    std::erase_if(common, [&](std::int32_t number) { return !own.contains(number); });
  }
  return common;
}

/// Returns the number of micro-batches of every step.
std::vector<std::int64_t> count_microbatches(const Numbers& all, const Numbers& starts) {
  std::vector<std::int64_t> counts;
  for (auto start = starts.begin(); start != starts.end(); ++start) {
    const auto next = std::next(start);
    const auto end = next == starts.end() ? all.end() : all.find(*next);
    counts.push_back(std::distance(all.find(*start), end));
  }
  return counts;
}

/// Returns the number of micro-batches of every step, counting numbers that no rank ran.
std::vector<std::int64_t> measure_steps(const Numbers& all, const Numbers& starts) {
  std::vector<std::int64_t> sizes;
  for (auto start = starts.begin(); start != starts.end(); ++start) {
    const auto next = std::next(start);
    sizes.push_back((next == starts.end() ? *all.rbegin() + 1 : *next) - *start);
  }
  return sizes;
}

/// Whether steps have one size above 1. The first and the last of several may be smaller, and so
/// may one beside at least three.
bool have_one_size(const std::vector<std::int64_t>& sizes) {
  if (sizes.size() < 2) return false;
  if (sizes.size() == 2 && sizes.front() != sizes.back()) return false;
  const std::int64_t usual = *std::max_element(sizes.begin(), sizes.end());
  if (usual < 2) return false;
  const auto others = std::count_if(std::next(sizes.begin()), std::prev(sizes.end()),
                                    [usual](std::int64_t size) { return size != usual; });
  return others == 0 || (others == 1 && std::count(sizes.begin(), sizes.end(), usual) >= 3);
}

/// Whether steps begin at these micro-batches. Where there are only forwards, a missing micro-batch
/// may look like the time between two steps, so that none may be missing.
bool are_steps(const std::vector<OpsInOrder>& recorders, const Numbers& starts, bool are_forwards) {
  const Numbers all = list_numbers(recorders);
  return (!are_forwards && have_one_size(count_microbatches(all, starts))) ||
         have_one_size(measure_steps(all, starts));
}

void add_doubt(ObservedTrace& trace, const Numbers& pauses) {
  trace.remarks.doubts.push_back(fmt::format(
      "nothing states the step of any op, and all ranks pause before the forwards of micro-batch "
      "{}: what counts as one step may be several; state the step of every op (args.step)",
      *std::next(pauses.begin())));
}

}  // namespace

ObservedTrace split_running_microbatches(ObservedTrace trace) {
  if (!is_one_counted_step(trace)) return trace;
  std::vector<OpsInOrder> recorders = computes_by_recorder(trace);
  std::erase_if(recorders, [](const OpsInOrder& ops) { return ops.empty(); });
  if (recorders.size() < 2) return trace;
  const bool are_forwards = !has_backwards(trace);
  const Numbers found = are_forwards ? find_starts_of_forwards(recorders) : find_starts(recorders);
  if (!are_steps(recorders, found, are_forwards)) {
    if (!are_forwards) return trace;
    const Numbers pauses = find_common_pauses(recorders);
    if (are_steps(recorders, pauses, are_forwards)) add_doubt(trace, pauses);
    return trace;
  }
  const std::vector<std::int32_t> starts(found.begin(), found.end());
  for (ObservedOp& observed : trace.ops)
    if (observed.numbered)  // messages may precede the first op
      observed.step = std::max<std::int64_t>(
          0, std::upper_bound(starts.begin(), starts.end(), observed.op.microbatch) -
                 starts.begin() - 1);
  return trace;
}

}  // namespace bubblescope::traces
