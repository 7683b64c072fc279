// Determines ranks from recorders and steps from ops.
#include "traces/measured/group_steps.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "traces/measured/complete_ops.h"

namespace bubblescope::traces {

namespace {

/// The first start of a forward by [rank][chunk]; empty lists where ops state their stage.
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
  return first;
}

bool are_distinct(const std::vector<std::int32_t>& numbers) {
  return std::set(numbers.begin(), numbers.end()).size() == numbers.size();
}

std::int32_t stage_of(std::int32_t chunk, std::int32_t rank, std::int32_t ranks, bool in_v) {
  return in_v && chunk == 1 ? 2 * ranks - 1 - rank : chunk * ranks + rank;
}

}  // namespace

std::vector<std::int32_t> find_recorder_ranks(const ObservedTrace& trace) {
  using Place = std::tuple<std::int32_t, std::int32_t, std::size_t>;
  const auto no_rank = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int32_t> first_stage(trace.recorders.size(), no_rank);
  for (const ObservedOp& observed : trace.ops) {
    std::int32_t& stage = first_stage[observed.recorder];
    if (!observed.chunk && is_compute(observed.op.kind)) stage = std::min(stage, observed.op.stage);
  }
  // Stages place all traces if only some of them state their rank.
  const bool all_state = std::all_of(trace.recorders.begin(), trace.recorders.end(),
                                     [](const Recorder& recorder) { return recorder.rank; });
  const bool by_stage =
      !all_state && are_distinct(first_stage) &&
      std::find(first_stage.begin(), first_stage.end(), no_rank) == first_stage.end();
  std::vector<Place> places;
  for (std::size_t at = 0; at < trace.recorders.size(); ++at) {
    std::optional<std::int32_t> rank = trace.recorders[at].rank;
    if (by_stage) rank.reset();
    places.push_back({rank.value_or(no_rank), rank ? 0 : first_stage[at], rank ? 0 : at});
  }
  std::vector<Place> ordered = places;
  std::sort(ordered.begin(), ordered.end());
  ordered.erase(std::unique(ordered.begin(), ordered.end()), ordered.end());
  std::vector<std::int32_t> ranks;
  for (const Place& place : places)
    ranks.push_back(static_cast<std::int32_t>(
        std::lower_bound(ordered.begin(), ordered.end(), place) - ordered.begin()));
  return ranks;
}

std::map<StepKey, StepOps> group_by_step(std::vector<ObservedOp> ops,
                                         const std::vector<std::int32_t>& rank_of_recorder) {
  std::int32_t ranks = 0;
  for (const std::int32_t rank : rank_of_recorder) ranks = std::max(ranks, rank + 1);
  std::map<StepKey, StepOps> steps;
  for (ObservedOp& observed : ops) observed.recorder = rank_of_recorder[observed.recorder];
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

void number_microbatches(std::vector<ObservedOp>& computes) {
  std::set<std::int32_t> seen;
  std::map<std::tuple<std::int32_t, OpKind>, std::int32_t> next;  // stage, kind
  for (ObservedOp& observed : computes) {
    if (!observed.numbered) observed.op.microbatch = next[{observed.op.stage, observed.op.kind}]++;
    seen.insert(observed.op.microbatch);
  }
  std::map<std::int32_t, std::int32_t> number_of;
  for (const std::int32_t microbatch : seen)
    number_of.emplace(microbatch, static_cast<std::int32_t>(number_of.size()));
  for (ObservedOp& observed : computes)
    observed.op.microbatch = number_of.at(observed.op.microbatch);
}

}  // namespace bubblescope::traces
