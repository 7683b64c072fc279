// Determines ranks from recorders and steps from ops.
#include "traces/measured/group_steps.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "traces/measured/complete_ops.h"

namespace bubblescope::traces {

namespace {

/// The first start of a forward by [rank][chunk], on ranks with a trace; empty where ops state
/// their stage.
std::vector<std::vector<Nanos>> find_first_forwards(const std::vector<ObservedOp>& ops,
                                                    std::int32_t ranks) {
  constexpr std::int32_t kMaxChunks = 2;  ///< more are not placed in a V
  std::vector<std::vector<Nanos>> first(static_cast<std::size_t>(ranks));
  for (const ObservedOp& observed : ops) {
    if (observed.op.kind != OpKind::kForward) continue;
    if (!observed.chunk || *observed.chunk >= kMaxChunks) return {};
    const auto chunk = static_cast<std::size_t>(*observed.chunk);
    std::vector<Nanos>& starts = first[observed.recorder];
    if (starts.size() <= chunk) starts.resize(chunk + 1, std::numeric_limits<Nanos>::max());
    starts[chunk] = std::min(starts[chunk], observed.start);
  }
  std::erase_if(first, [](const std::vector<Nanos>& starts) { return starts.empty(); });
  return first;
}

std::int32_t stage_of(std::int32_t chunk, std::int32_t rank, std::int32_t ranks, bool in_v) {
  return in_v && chunk == 1 ? 2 * ranks - 1 - rank : chunk * ranks + rank;
}

}  // namespace

std::map<StepKey, StepOps> group_by_step(std::vector<ObservedOp> ops, const RankNumbers& numbers) {
  const std::int32_t ranks = numbers.ranks;
  std::map<StepKey, StepOps> steps;
  for (ObservedOp& observed : ops) observed.recorder = numbers.of_recorder[observed.recorder];
  const bool in_v = ranks > 1 && is_placed_in_v(find_first_forwards(ops, ranks));
  for (ObservedOp& observed : ops) {
    if (observed.chunk)
      observed.op.stage = stage_of(*observed.chunk, observed.recorder, ranks, in_v);
    StepOps& step = steps[{observed.replica, observed.step}];
    (is_compute(observed.op.kind) ? step.computes : step.messages).push_back(observed);
  }
  std::erase_if(steps, [](const auto& step) { return step.second.computes.empty(); });
  return steps;
}

void number_microbatches(StepOps& ops) {
  std::set<std::int32_t> seen;
  std::map<std::tuple<std::int32_t, OpKind>, std::int32_t> next;               // stage, kind
  std::map<std::tuple<std::int32_t, bool, std::int32_t>, std::int32_t> of_op;  // as it was counted
  for (ObservedOp& observed : ops.computes) {
    const std::int32_t counted = observed.op.microbatch;
    if (!observed.numbered) observed.op.microbatch = next[{observed.op.stage, observed.op.kind}]++;
    of_op[{observed.op.stage, observed.op.kind == OpKind::kForward, counted}] =
        observed.op.microbatch;
    seen.insert(observed.op.microbatch);
  }
  std::map<std::int32_t, std::int32_t> number_of;
  for (const std::int32_t microbatch : seen)
    number_of.emplace(microbatch, static_cast<std::int32_t>(number_of.size()));
  for (ObservedOp& observed : ops.computes)
    observed.op.microbatch = number_of.at(observed.op.microbatch);
  for (ObservedOp& message : ops.messages) {
    if (!message.is_arrival) continue;
    const bool forward = message.op.kind == OpKind::kRecvForward;
    const auto op = of_op.find({message.op.stage, forward, message.op.microbatch});
    if (op == of_op.end()) continue;
    message.op.microbatch = number_of.at(op->second);
    message.numbered = true;
  }
}

}  // namespace bubblescope::traces
