// Compares ranges with and without numbers by their times.
#include "traces/measured/unnumbered_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace bubblescope::traces {

void UnnumberedRanges::add(const TimeSpan& span, bool is_numbered, const std::string& name) {
  if (is_numbered)
    numbered_.push_back(span);
  else
    unnumbered_.push_back({span, name});
}

std::optional<std::string> UnnumberedRanges::describe() {
  std::sort(numbered_.begin(), numbered_.end(),
            [](const TimeSpan& left, const TimeSpan& right) { return left.start < right.start; });
  // The latest end of a range and those before it, so that a search by start finds overlaps.
  for (std::size_t at = 1; at < numbered_.size(); ++at)
    numbered_[at].end = std::max(numbered_[at].end, numbered_[at - 1].end);
  std::size_t count = 0;
  std::string example;
  for (const Named& one : unnumbered_) {
    const auto after =
        std::upper_bound(numbered_.begin(), numbered_.end(), one.span.end,
                         [](Nanos end, const TimeSpan& numbered) { return end <= numbered.start; });
    if (after != numbered_.begin() && std::prev(after)->end > one.span.start) continue;
    if (count++ == 0) example = one.name;
  }
  if (count == 0) return {};
  return fmt::format(
      "{} range(s) outside of all numbered ops name an op without its number, such as '{}': they "
      "are left out; if they belong to the steps, give them numbers, or rules for their names",
      count, example);
}

std::optional<std::string> erase_unnumbered(std::vector<ChromeSlice>& slices, NameMatcher& names) {
  // A backward and its input gradient count as one kind: a trace may name the same range as either.
  const auto compute_kind = [](const Op& op) -> std::optional<OpKind> {
    if (!is_compute(op.kind)) return {};
    return gives_input_grad(op.kind) ? OpKind::kBackward : op.kind;
  };
  const auto op_of = [&](const ChromeSlice& slice) {
    return slice.op.empty() ? names.find(slice.name).op : parse_op_name(slice.op);
  };
  UnnumberedRanges ranges;
  std::set<OpKind> numbered;
  const auto add_numbered = [&](const ChromeSlice& slice, const Op& op) {
    const std::optional<OpKind> kind = compute_kind(op);
    if (!kind) return;
    ranges.add({slice.start, slice.end}, true, slice.name);
    numbered.insert(*kind);
  };
  for (const ChromeSlice& slice : slices) {
    if (const std::optional<NamedOp> named = op_of(slice)) {
      if (named->has_microbatch) add_numbered(slice, named->op);
    } else if (const auto pair = parse_pair_name(slice.op.empty() ? slice.name : slice.op)) {
      for (const Op& op : *pair) add_numbered(slice, op);
    }
  }
  std::erase_if(slices, [&](const ChromeSlice& slice) {
    const std::optional<NamedOp> named = op_of(slice);
    if (!named || named->has_microbatch) return false;
    const std::optional<OpKind> kind = compute_kind(named->op);
    if (!kind || !numbered.contains(*kind)) return false;
    ranges.add({slice.start, slice.end}, false, slice.name);
    return true;
  });
  return ranges.describe();
}

}  // namespace bubblescope::traces
