// Finds runs by counting how often each op was seen.
#include "traces/measured/accumulated_runs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/ir/size_limits.h"

namespace bubblescope::traces {

namespace {

/// Rank, kind, stage, chunk, micro-batch and slice.
using OpIdentity = std::tuple<std::int32_t, OpKind, std::int32_t, std::int32_t, std::int32_t, int>;

OpIdentity identify(const ObservedOp& observed) {
  const Op& op = observed.op;
  return {observed.recorder,           op.kind,       op.stage,
          observed.chunk.value_or(-1), op.microbatch, op.slice};
}

/// The times at which a rank ran an op, one for each run.
using SeenOps = std::map<OpIdentity, std::vector<ObservedOp*>>;

SeenOps collect_ops(std::vector<ObservedOp>& computes) {
  SeenOps seen;
  for (ObservedOp& observed : computes) seen[identify(observed)].push_back(&observed);
  for (auto& [_, times] : seen)
    std::sort(times.begin(), times.end(), [](const ObservedOp* left, const ObservedOp* right) {
      return left->start < right->start;
    });
  return seen;
}

/// How often every op was seen; 1 where they differ, or if a rank has no backward.
std::size_t count_runs(const SeenOps& seen) {
  std::set<std::int32_t> ranks;
  std::set<std::int32_t> ranks_with_backwards;
  const std::size_t runs = seen.begin()->second.size();
  for (const auto& [_, times] : seen) {
    if (times.size() != runs || !times.front()->numbered) return 1;
    ranks.insert(times.front()->recorder);
    if (gives_input_grad(times.front()->op.kind))
      ranks_with_backwards.insert(times.front()->recorder);
  }
  return ranks == ranks_with_backwards ? runs : 1;
}

/// Whether every rank ended each run before it began the next one.
bool follow_each_other(const SeenOps& seen, std::size_t runs) {
  std::map<std::pair<std::int32_t, std::size_t>, std::pair<Nanos, Nanos>> extents;
  for (const auto& [_, times] : seen)
    for (std::size_t run = 0; run < runs; ++run) {
      auto& [start, end] =
          extents
              .try_emplace({times[run]->recorder, run}, std::numeric_limits<Nanos>::max(),
                           std::numeric_limits<Nanos>::min())
              .first->second;
      start = std::min(start, times[run]->start);
      end = std::max(end, times[run]->end);
    }
  for (const auto& [rank_and_run, extent] : extents) {
    const auto next = extents.find({rank_and_run.first, rank_and_run.second + 1});
    if (next != extents.end() && next->second.first < extent.second) return false;
  }
  return true;
}

/// The run of a message: a receive comes before the op that it is for, a send after the op whose
/// result it is.
std::int32_t find_run(const ObservedOp& message, const SeenOps& seen, std::size_t runs) {
  const bool sends = is_send(message.op.kind);
  const bool forward =
      message.op.kind == OpKind::kSendForward || message.op.kind == OpKind::kRecvForward;
  std::size_t before = 0;
  for (const OpKind kind : {OpKind::kForward, OpKind::kBackward, OpKind::kInputGrad}) {
    if (forward != (kind == OpKind::kForward)) continue;
    ObservedOp op = message;
    op.op.kind = kind;
    const auto times = seen.find(identify(op));
    if (times == seen.end()) continue;
    const Nanos at = sends ? message.start : message.end;
    for (const ObservedOp* own : times->second) before += own->start < at ? 1 : 0;
  }
  if (sends && before > 0) --before;
  return static_cast<std::int32_t>(std::min(before, runs - 1));
}

void number_runs(StepOps& step) {
  SeenOps seen = collect_ops(step.computes);
  if (seen.empty()) return;
  const std::size_t runs = count_runs(seen);
  if (runs < 2 || !follow_each_other(seen, runs)) return;
  std::int32_t microbatches = 0;
  for (const ObservedOp& observed : step.computes)
    microbatches = std::max(microbatches, observed.op.microbatch + 1);
  if (microbatches > kMaxMicrobatches / static_cast<std::int32_t>(runs)) return;
  for (ObservedOp& message : step.messages)
    if (message.numbered) message.op.microbatch += find_run(message, seen, runs) * microbatches;
  for (auto& [_, times] : seen)
    for (std::size_t run = 0; run < runs; ++run)
      times[run]->op.microbatch += static_cast<std::int32_t>(run) * microbatches;
}

}  // namespace

void number_accumulated_runs(std::map<StepKey, StepOps>& steps) {
  for (auto& [_, step] : steps) number_runs(step);
}

}  // namespace bubblescope::traces
