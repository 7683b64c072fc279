// Determines ranks from recorders and steps from ops.
#include "traces/measured/group_steps.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

namespace bubblescope::traces {

namespace {

/// The first start of a forward by [rank][chunk], on ranks with a trace; empty where ops state
/// their stage.
std::vector<std::vector<Nanos>> find_first_forwards(const std::vector<ObservedOp>& ops,
                                                    std::int32_t ranks) {
  constexpr std::int32_t kMaxChunksOfV = 2;  ///< more are not placed in a V
  std::vector<std::vector<Nanos>> first(static_cast<std::size_t>(ranks));
  for (const ObservedOp& observed : ops) {
    if (observed.op.kind != OpKind::kForward) continue;
    if (!observed.chunk || *observed.chunk >= kMaxChunksOfV) return {};
    const auto chunk = static_cast<std::size_t>(*observed.chunk);
    std::vector<Nanos>& starts = first[observed.recorder];
    if (starts.size() <= chunk) starts.resize(chunk + 1, std::numeric_limits<Nanos>::max());
    starts[chunk] = std::min(starts[chunk], observed.start);
  }
  std::erase_if(first, [](const std::vector<Nanos>& starts) { return starts.empty(); });
  return first;
}

/// Whether chunks are placed in a V: the first of two chunks on ranks 0 to p-1, the second back
/// from p-1 to 0.
bool is_placed_in_v(const std::vector<std::vector<Nanos>>& first_forwards) {
  if (first_forwards.size() < 2) return false;
  for (const std::vector<Nanos>& chunks : first_forwards)
    if (chunks.size() != 2) return false;
  return first_forwards.back()[1] < first_forwards.front()[1];
}

std::int32_t stage_of(std::int32_t chunk, std::int32_t rank, std::int32_t ranks, bool in_v) {
  return in_v && chunk == 1 ? 2 * ranks - 1 - rank : chunk * ranks + rank;
}

/// The number of stages of a step that all run as many micro-batches; 0 if they do not.
std::size_t count_whole_stages(const StepOps& step) {
  std::map<std::pair<std::int32_t, OpKind>, std::size_t> counts;
  std::set<std::int32_t> stages;
  std::set<OpKind> kinds;
  for (const ObservedOp& observed : step.computes) {
    ++counts[{observed.op.stage, observed.op.kind}];
    stages.insert(observed.op.stage);
    kinds.insert(observed.op.kind);
  }
  const auto differs = [&](const auto& count) { return count.second != counts.begin()->second; };
  if (counts.size() != stages.size() * kinds.size()) return 0;
  return std::any_of(counts.begin(), counts.end(), differs) ? 0 : stages.size();
}

std::size_t count_stages(const StepOps& step) {
  std::set<std::int32_t> stages;
  for (const ObservedOp& observed : step.computes) stages.insert(observed.op.stage);
  return stages.size();
}

/// The numbers of ops of the whole steps, and how many steps have each.
std::map<std::size_t, std::size_t> count_whole_steps(const std::map<StepKey, StepOps>& steps) {
  std::size_t stages = 0;
  for (const auto& [_, step] : steps) stages = std::max(stages, count_stages(step));
  std::map<std::size_t, std::size_t> counts;
  for (const auto& [_, step] : steps)
    if (stages > 0 && count_whole_stages(step) == stages) ++counts[step.computes.size()];
  return counts;
}

}  // namespace

std::size_t find_whole_count(const std::map<StepKey, StepOps>& steps) {
  std::size_t largest = 0;
  for (const auto& [_, step] : steps) largest = std::max(largest, step.computes.size());
  const std::map<std::size_t, std::size_t> counts = count_whole_steps(steps);
  std::size_t most = 0;
  for (const auto& [ops, count] : counts) {
    if (count < most) continue;
    largest = ops;
    most = count;
  }
  return largest;
}

std::size_t count_other_microbatches(const std::map<StepKey, StepOps>& steps) {
  std::size_t others = 0;
  const std::size_t whole = find_whole_count(steps);
  for (const auto& [ops, count] : count_whole_steps(steps)) others += ops == whole ? 0 : count;
  return others;
}

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

StepOps number_microbatches(StepOps ops) {
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
    if (!message.is_arrival) {
      const auto number = number_of.find(message.op.microbatch);
      if (message.numbered && number != number_of.end()) message.op.microbatch = number->second;
      continue;
    }
    const bool forward = message.op.kind == OpKind::kRecvForward;
    const auto op = of_op.find({message.op.stage, forward, message.op.microbatch});
    if (op == of_op.end()) continue;
    message.op.microbatch = number_of.at(op->second);
    message.numbered = true;
  }
  return ops;
}

}  // namespace bubblescope::traces
