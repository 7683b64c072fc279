// Compares the order of ops with that of the interleaved schedule, and their times with its
// messages.
#include "traces/measured/open_chunks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "traces/measured/align_clocks.h"
#include "traces/measured/group_steps.h"

namespace bubblescope::traces {

namespace {

constexpr const char* kHint =
    ", which ops without numbers leave open; annotate them (tools/hooks/bubblescope_hooks.py)";
constexpr const char* kHintOfNumbered =
    ": then the numbers of ops count calls, not micro-batches; state the chunk of every op "
    "(args.model_chunk), or its stage (args.stage)";

bool is_forward(const ObservedOp* op) { return op->op.kind == OpKind::kForward; }

/// The ops of the first step.
OpsInOrder first_step_of(const OpsInOrder& ops) {
  OpsInOrder first;
  for (const ObservedOp* op : ops)
    if (op->step == ops.front()->step) first.push_back(op);
  return first;
}

OpsInOrder select(const OpsInOrder& ops, bool forwards) {
  OpsInOrder selected;
  for (const ObservedOp* op : ops)
    if (is_forward(op) == forwards) selected.push_back(op);
  return selected;
}

/// Whether an op of `rank` begins before the end of the op of `source` that it would need with
/// several chunks.
bool begins_too_early(const OpsInOrder& rank, const OpsInOrder& source, std::size_t ranks) {
  for (std::size_t at = ranks; at < rank.size() && at - ranks < source.size(); ++at)
    if (rank[at]->start + kClockTolerance < source[at - ranks]->end) return true;
  return false;
}

/// Whether every rank runs two forwards fewer than the one before it, and the last more than one;
/// `max_warmup` is the number of forwards in a step.
bool are_two_apart(std::vector<std::int32_t> warmups, std::int32_t max_warmup) {
  std::sort(warmups.begin(), warmups.end());
  if (warmups.size() < 2 || warmups.front() < 2) return false;
  std::int32_t expected = warmups.front();
  for (const std::int32_t warmup : warmups) {
    if (warmup != std::min(max_warmup, expected)) return false;
    expected += 2;
  }
  return true;
}

/// The first of the steps with the most ops, which is not cut.
std::optional<StepKey> find_fullest_step(const ObservedTrace& trace) {
  std::map<StepKey, std::size_t> counts;
  for (const ObservedOp& observed : trace.ops)
    if (is_compute(observed.op.kind)) ++counts[{observed.replica, observed.step}];
  const auto fullest = std::max_element(
      counts.begin(), counts.end(),
      [](const auto& left, const auto& right) { return left.second < right.second; });
  if (fullest == counts.end()) return {};
  return fullest->first;
}

}  // namespace

std::int32_t count_warmup(const OpsInOrder& ops) {
  std::int32_t forwards = 0;
  for (const ObservedOp* observed : ops) {
    if (observed->step != ops.front()->step || gives_input_grad(observed->op.kind)) break;
    forwards += is_forward(observed) ? 1 : 0;
  }
  return forwards;
}

std::optional<std::string> describe_open_chunks(const OpsOfRanks& ranks, bool share_one_clock) {
  OpsOfRanks steps;
  std::vector<std::int32_t> warmups;
  bool are_numbered = false;
  for (const OpsInOrder& ops : ranks) {
    if (std::none_of(ops.begin(), ops.end(),
                     [](const ObservedOp* op) { return op->chunk_is_assumed; }))
      return {};
    are_numbered = are_numbered || ops.front()->numbered;
    steps.push_back(first_step_of(ops));
    warmups.push_back(count_warmup(steps.back()));
  }
  const std::size_t forwards = select(steps.front(), true).size();
  if (forwards == steps.front().size()) return {};  // no backward shows the order of chunks
  const auto max_warmup = static_cast<std::int32_t>(forwards);
  const bool run_all_first = std::all_of(steps.begin(), steps.end(), [&](const OpsInOrder& ops) {
    return ops.size() == 2 * forwards && count_warmup(ops) == max_warmup;
  });
  if (!run_all_first && are_two_apart(warmups, max_warmup))
    return fmt::format(
        "the ranks run {} forwards before their first backward, as with several stages per rank{}",
        fmt::join(warmups, ", "), are_numbered ? kHintOfNumbered : kHint);
  if (are_numbered) return {};
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

std::optional<std::string> describe_open_chunks(const ObservedTrace& trace,
                                                const std::vector<std::int32_t>& rank_of_recorder) {
  const std::optional<StepKey> fullest = find_fullest_step(trace);
  std::map<std::int32_t, OpsInOrder> by_rank;
  for (const ObservedOp& observed : trace.ops)
    if (is_compute(observed.op.kind) && StepKey(observed.replica, observed.step) == fullest)
      by_rank[rank_of_recorder[static_cast<std::size_t>(observed.recorder)]].push_back(&observed);
  if (by_rank.size() < 2) return {};
  OpsOfRanks ranks;
  for (auto& [_, ops] : by_rank) {
    sort_by_start(ops);
    ranks.push_back(std::move(ops));
  }
  const bool is_one_file = std::all_of(
      trace.recorders.begin(), trace.recorders.end(),
      [&](const Recorder& recorder) { return recorder.where == trace.recorders.front().where; });
  return describe_open_chunks(ranks, is_one_file);
}

}  // namespace bubblescope::traces
