// Compares the order of ops with that of the interleaved schedule, and their times with its
// messages.
#include "traces/measured/open_chunks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>

#include "traces/measured/align_clocks.h"

namespace bubblescope::traces {

namespace {

constexpr const char* kHint =
    ", which ops without numbers leave open; annotate them (tools/hooks/bubblescope_hooks.py)";

using Ops = std::vector<const ObservedOp*>;

bool is_forward(const ObservedOp* op) { return op->op.kind == OpKind::kForward; }

/// The ops of the first step.
Ops first_step_of(const Ops& ops) {
  Ops first;
  for (const ObservedOp* op : ops)
    if (op->step == ops.front()->step) first.push_back(op);
  return first;
}

Ops select(const Ops& ops, bool forwards) {
  Ops selected;
  for (const ObservedOp* op : ops)
    if (is_forward(op) == forwards) selected.push_back(op);
  return selected;
}

/// Whether an op of `rank` begins before the end of the op of `source` that it would need with
/// several chunks.
bool begins_too_early(const Ops& rank, const Ops& source, std::size_t ranks) {
  for (std::size_t at = ranks; at < rank.size() && at - ranks < source.size(); ++at)
    if (rank[at]->start + kClocksExact < source[at - ranks]->end) return true;
  return false;
}

/// The forwards before the first backward.
std::size_t count_warmup(const Ops& ops) {
  return static_cast<std::size_t>(std::find_if_not(ops.begin(), ops.end(), is_forward) -
                                  ops.begin());
}

/// Whether every rank runs two forwards fewer than the one before it, and the last more than one;
/// `most` is the number of forwards in a step.
bool are_two_apart(std::vector<std::size_t> warmups, std::size_t most) {
  std::sort(warmups.rbegin(), warmups.rend());
  if (warmups.size() < 2 || warmups.back() < 2) return false;
  for (std::size_t rank = 0; rank < warmups.size(); ++rank)
    if (warmups[rank] != std::min(most, warmups.back() + 2 * (warmups.size() - 1 - rank)))
      return false;
  return true;
}

}  // namespace

std::optional<std::string> describe_open_chunks(const OpsOfRanks& ranks, bool share_one_clock) {
  OpsOfRanks steps;
  std::vector<std::size_t> warmups;
  for (const Ops& ops : ranks) {
    if (std::none_of(ops.begin(), ops.end(),
                     [](const ObservedOp* op) { return op->chunk_is_assumed; }))
      return {};
    steps.push_back(first_step_of(ops));
    warmups.push_back(count_warmup(steps.back()));
  }
  const std::size_t forwards = select(steps.front(), true).size();
  const bool run_all_first = std::all_of(steps.begin(), steps.end(), [&](const Ops& ops) {
    return ops.size() == 2 * forwards && count_warmup(ops) == forwards;
  });
  if (!run_all_first && are_two_apart(warmups, forwards))
    return fmt::format(
        "the ranks run {} forwards before their first backward, as with several stages per rank{}",
        fmt::join(warmups, ", "), kHint);
  if (!run_all_first || forwards % ranks.size() != 0 || forwards == ranks.size()) return {};
  const bool is_excluded =
      share_one_clock &&
      (begins_too_early(select(steps.front(), true), select(steps.back(), true), ranks.size()) ||
       begins_too_early(select(steps.back(), false), select(steps.front(), false), ranks.size()));
  if (is_excluded) return {};
  return fmt::format(
      "every rank runs {} forwards before its first backward, with {} micro-batches in one stage "
      "per rank or {} in {} stages per rank{}",
      forwards, forwards, ranks.size(), forwards / ranks.size(), kHint);
}

}  // namespace bubblescope::traces
