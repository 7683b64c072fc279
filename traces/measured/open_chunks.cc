// Compares the order of ops with that of the interleaved schedule, and their times with its
// messages.
#include "traces/measured/open_chunks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
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

/// Returns the ops of the first step.
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

/// Whether an op begins sooner after that of the rank's chunk before it than the ops of the other
/// ranks between them take. This compares the times of every rank with its own only, so that the
/// clocks of ranks need not agree. `ways` are ops of one direction, ranks in the order of messages.
bool return_too_early(const OpsOfRanks& ways) {
  const std::size_t ranks = ways.size();
  for (std::size_t rank = 0; rank < ranks; ++rank)
    for (std::size_t at = ranks; at < ways[rank].size(); ++at) {
      Nanos least = 0;
      for (std::size_t other = 0; other < ranks; ++other) {
        const ObservedOp* op = ways[other][other < rank ? at : at - ranks];
        least += op->end - op->start;
      }
      const Nanos passed = ways[rank][at]->start - ways[rank][at - ranks]->start;
      if (passed + std::max(kClockTolerance, least / 100) < least) return true;
    }
  return false;
}

/// Whether times exclude several chunks per rank, all forwards of which run first.
bool is_excluded_by_times(const OpsOfRanks& steps, bool share_one_clock) {
  OpsOfRanks forwards;
  OpsOfRanks backwards;
  bool may_wait = false;  // then the length of an op is more than it takes
  for (const OpsInOrder& ops : steps) {
    forwards.push_back(select(ops, true));
    backwards.push_back(select(ops, false));
    may_wait = may_wait || std::any_of(ops.begin(), ops.end(),
                                       [](const ObservedOp* op) { return op->may_hold_waiting; });
  }
  std::reverse(backwards.begin(), backwards.end());
  const auto is_early = [&](const OpsOfRanks& ways) {
    return (share_one_clock && begins_too_early(ways.front(), ways.back(), ways.size())) ||
           (!may_wait && return_too_early(ways));
  };
  return is_early(forwards) || is_early(backwards);
}

/// Whether the first rank sends results to the next one and the last rank receives them, or the
/// same of gradients, but no message goes from the last rank to the first as with several chunks.
bool lack_messages_of_chunks(const ObservedTrace& trace,
                             const std::vector<std::int32_t>& rank_of_recorder, std::int32_t last) {
  std::set<std::pair<std::int32_t, OpKind>> kinds;  // by rank
  for (const ObservedOp& observed : trace.ops)
    if (is_message(observed.op.kind))
      kinds.emplace(rank_of_recorder[static_cast<std::size_t>(observed.recorder)],
                    observed.op.kind);
  const auto has = [&](std::int32_t rank, OpKind kind) { return kinds.contains({rank, kind}); };
  if (has(last, OpKind::kSendForward) || has(0, OpKind::kRecvForward) ||
      has(0, OpKind::kSendBackward) || has(last, OpKind::kRecvBackward))
    return false;
  return (has(0, OpKind::kSendForward) && has(last, OpKind::kRecvForward)) ||
         (has(last, OpKind::kSendBackward) && has(0, OpKind::kRecvBackward)) ||
         (has(0, OpKind::kSendForward) && has(last, OpKind::kSendBackward)) ||
         (has(last, OpKind::kRecvForward) && has(0, OpKind::kRecvBackward));
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

/// Returns the first of the steps with the most ops, which is not cut.
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

std::optional<std::string> describe_open_chunks(const OpsOfRanks& ranks,
                                                const ChunkEvidence& evidence) {
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
  if (evidence.lack_messages || is_excluded_by_times(steps, evidence.share_one_clock)) return {};
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
  const bool lack_messages =
      lack_messages_of_chunks(trace, rank_of_recorder, by_rank.rbegin()->first);
  return describe_open_chunks(ranks, {is_one_file, lack_messages});
}

}  // namespace bubblescope::traces
