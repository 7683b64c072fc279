// Looks names up, and drops what is annotated twice or without its number.
#include "traces/measured/named_slices.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "traces/measured/chrome_ops.h"
#include "traces/measured/unnumbered_ranges.h"

namespace bubblescope::traces {

namespace {

bool name_same_op(const NamedSlice& outer, const NamedSlice& inner) {
  return outer.op && inner.op && outer.op->op.kind == inner.op->op.kind &&
         outer.op->op.microbatch == inner.op->op.microbatch &&
         (!outer.op->has_stage || outer.op->op.stage == inner.op->op.stage);
}

/// Whether a slice names an op of the pair that the one around it names.
bool is_of_pair(const NamedSlice& outer, const NamedSlice& inner) {
  if (!outer.pair || !inner.op || inner.slice.end > outer.slice.end) return false;
  return std::any_of(outer.pair->begin(), outer.pair->end(), [&](const Op& op) {
    const Op& own = inner.op->op;
    return op.microbatch == own.microbatch && (!inner.op->has_stage || op.stage == own.stage) &&
           (op.kind == own.kind || (gives_input_grad(op.kind) && gives_input_grad(own.kind)));
  });
}

/// An op may be named twice, by its runtime and by a hook inside of it (tools/hooks). The inner
/// slice is closer to the computation, except in a pair, whose name tells that it is one.
std::vector<NamedSlice> name_once(std::vector<NamedSlice> slices) {
  std::map<std::uint32_t, std::size_t> last;   // by thread
  std::map<std::uint32_t, std::size_t> pairs;  // the last one, by thread
  std::vector<bool> is_superfluous(slices.size(), false);
  for (std::size_t at = 0; at < slices.size(); ++at) {
    const ChromeSlice& slice = slices[at].slice;
    const auto [found, is_first] = last.emplace(slice.thread, at);
    const NamedSlice& before = slices[found->second];
    if (!is_first && slice.end <= before.slice.end && name_same_op(before, slices[at]))
      is_superfluous[found->second] = true;
    found->second = at;
    if (slices[at].pair) pairs[slice.thread] = at;
    const auto pair = pairs.find(slice.thread);
    if (pair != pairs.end() && is_of_pair(slices[pair->second], slices[at]))
      is_superfluous[at] = true;
  }
  std::size_t at = 0;
  std::erase_if(slices, [&](const NamedSlice&) { return is_superfluous[at++]; });
  return slices;
}

NamedSlices without_unnumbered(std::vector<NamedSlice> slices) {
  // A backward and its input gradient count as one kind: a trace may name the same range as either.
  const auto compute_kind = [](const Op& op) -> std::optional<OpKind> {
    if (!is_compute(op.kind)) return {};
    return gives_input_grad(op.kind) ? OpKind::kBackward : op.kind;
  };
  UnnumberedRanges ranges;
  std::set<OpKind> numbered;
  const auto add_numbered = [&](const ChromeSlice& slice, const Op& op) {
    const std::optional<OpKind> kind = compute_kind(op);
    if (!kind) return;
    ranges.add({slice.start, slice.end}, true, slice.name);
    numbered.insert(*kind);
  };
  for (const NamedSlice& one : slices) {
    if (one.op && one.op->has_microbatch) add_numbered(one.slice, one.op->op);
    if (one.pair)
      for (const Op& op : *one.pair) add_numbered(one.slice, op);
  }
  std::erase_if(slices, [&](const NamedSlice& one) {
    if (!one.op || one.op->has_microbatch) return false;
    const std::optional<OpKind> kind = compute_kind(one.op->op);
    if (!kind || !numbered.contains(*kind)) return false;
    ranges.add({one.slice.start, one.slice.end}, false, one.slice.name);
    return true;
  });
  return {std::move(slices), ranges.describe()};
}

}  // namespace

NamedSlices name_slices(std::vector<ChromeSlice> slices, NameMatcher& names) {
  std::vector<NamedSlice> named;
  for (ChromeSlice& slice : slices) {
    NamedSlice& one = named.emplace_back();
    one.op = find_op(slice, names);
    if (!one.op) one.pair = parse_pair_name(slice.op.empty() ? slice.name : slice.op);
    one.slice = std::move(slice);
  }
  return without_unnumbered(std::move(named));
}

bool is_of_device(const ChromeSlice& slice) { return slice.category == "gpu_user_annotation"; }

std::vector<NamedSlice> choose_slices(std::vector<NamedSlice> slices, bool has_kernels) {
  const auto on_device = [](const NamedSlice& one) { return is_of_device(one.slice); };
  const auto on_host = [](const NamedSlice& one) { return !is_of_device(one.slice); };
  if (has_kernels && std::any_of(slices.begin(), slices.end(), on_host))
    std::erase_if(slices, on_device);
  else if (std::any_of(slices.begin(), slices.end(), on_device))
    std::erase_if(slices, on_host);
  std::stable_sort(slices.begin(), slices.end(),
                   [](const NamedSlice& left, const NamedSlice& right) {
                     return std::tuple(left.slice.start, -left.slice.end) <
                            std::tuple(right.slice.start, -right.slice.end);
                   });
  return name_once(std::move(slices));
}

}  // namespace bubblescope::traces
