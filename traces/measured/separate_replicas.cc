// Groups recorders by the ops that they ran.
#include "traces/measured/separate_replicas.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace bubblescope::traces {

namespace {

/// Stages with their micro-batches: ranks that alternate on a stage's micro-batches are no
/// replicas.
using Share = std::set<std::pair<std::int32_t, std::int32_t>>;

/// The share of every recorder; nullopt where an op does not state its stage.
std::optional<std::vector<Share>> shares_by_recorder(const ObservedTrace& trace) {
  std::vector<Share> shares(trace.recorders.size());
  for (const ObservedOp& observed : trace.ops) {
    if (!is_compute(observed.op.kind)) continue;
    if (observed.chunk || observed.replica != 0) return {};
    shares[observed.recorder].emplace(observed.op.stage, observed.op.microbatch);
  }
  return shares;
}

}  // namespace

void separate_replicas(ObservedTrace& trace) {
  const auto knows = [](const Recorder& recorder) { return recorder.has_replica; };
  if (std::any_of(trace.recorders.begin(), trace.recorders.end(), knows)) return;
  const auto shares = shares_by_recorder(trace);
  if (!shares || std::set<Share>(shares->begin(), shares->end()).size() == shares->size()) return;
  std::vector<std::size_t> order(trace.recorders.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return trace.recorders[left].rank < trace.recorders[right].rank;
  });
  std::map<Share, std::int32_t> seen;
  std::map<Share, std::optional<std::int32_t>> rank_of;
  std::vector<std::int32_t> replica(order.size());
  for (const std::size_t at : order) {
    const Share& mine = (*shares)[at];
    replica[at] = seen[mine]++;
    trace.recorders[at].rank = rank_of.emplace(mine, trace.recorders[at].rank).first->second;
  }
  for (ObservedOp& observed : trace.ops) observed.replica = replica[observed.recorder];
  for (ObservedWork& work : trace.works) work.replica = replica[work.recorder];
}

}  // namespace bubblescope::traces
