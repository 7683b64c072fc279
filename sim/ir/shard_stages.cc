// PyTorch's two passes over a rank's order.
#include "sim/ir/shard_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::inline sim {

namespace {

using Stages = std::vector<std::int32_t>;

Op make_cell(OpKind kind, std::int32_t stage) { return {stage, 0, 0, kind, Pairing::kAlone}; }

bool contains(const Stages& stages, std::int32_t stage) {
  return std::find(stages.begin(), stages.end(), stage) != stages.end();
}

/// Sorts stages like the iteration order of a small Python set of small integers. Until 2.14
/// PyTorch keeps the gathered stages in a set and drops them in that order; later releases drop the
/// oldest first, which is the given order.
void sort_as_dropped(Stages& stages, PytorchRelease release) {
  if (release != PytorchRelease::kFrom26) return;
  std::sort(stages.begin(), stages.end(), [](std::int32_t left, std::int32_t right) {
    return std::pair(left % 8, left) < std::pair(right % 8, right);
  });
}

/// Returns for each op the number of different stages from it to the end.
std::vector<std::size_t> count_stages_left(const RankOrder& ops) {
  std::vector<std::size_t> counts(ops.size());
  std::set<std::int32_t> seen;
  for (std::size_t at = ops.size(); at-- > 0;) {
    if (is_compute(ops[at].kind)) seen.insert(ops[at].stage);
    counts[at] = seen.size();
  }
  return counts;
}

/// The first `count` different stages from `at` on; a pair counts as one cell.
Stages next_stages(const RankOrder& ops, std::size_t at, std::size_t count) {
  Stages stages;
  for (; at < ops.size(); ++at) {
    // Copies need no parameters.
    if (!is_compute(ops[at].kind)) continue;
    if (!contains(stages, ops[at].stage)) stages.push_back(ops[at].stage);
    if (ops[at].pairing != Pairing::kFirst && stages.size() >= count) break;
  }
  return stages;
}

/// True if `at` repeats the stage of the op before it, so that the next stages have not changed.
bool repeats(const RankOrder& ops, std::size_t at) {
  return at > 0 && is_compute(ops[at - 1].kind) && ops[at].pairing == Pairing::kAlone &&
         ops[at - 1].pairing == Pairing::kAlone && ops[at - 1].stage == ops[at].stage;
}

}  // namespace

std::string to_string(const UnshardLookahead& lookahead) {
  if (lookahead.stages.empty()) return "auto";
  if (lookahead.stages == std::vector{static_cast<std::int32_t>(kMaxGatheredStages)}) return "full";
  return fmt::format("{}", fmt::join(lookahead.stages, ","));
}

std::vector<std::int32_t> spread_lookahead(const UnshardLookahead& lookahead, std::int32_t ranks) {
  constexpr auto kMax = static_cast<std::int32_t>(kMaxGatheredStages);
  std::vector<std::int32_t> stages = lookahead.stages;
  if (stages.empty())
    for (std::int32_t rank = 0; rank < ranks; ++rank) stages.push_back(std::min(rank + 2, kMax));
  if (stages.size() == 1) stages.resize(static_cast<std::size_t>(ranks), stages.front());
  if (stages.size() != static_cast<std::size_t>(ranks))
    throw Error(fmt::format("`unshard_lookahead` has {} for {}; give one, or one per rank",
                            counted(stages.size(), "entry"), counted(ranks, "rank")));
  for (const std::int32_t count : stages)
    if (count < 1 || count > kMax)
      throw Error(fmt::format(
          "`unshard_lookahead` {} is not in 1..{}: a rank has at most {} gathered at once", count,
          kMax, counted(kMax, "stage")));
  return stages;
}

RankOrder add_unshards(const RankOrder& order, PytorchRelease release, std::size_t lookahead) {
  const std::vector<std::size_t> stages_left = count_stages_left(order);
  RankOrder cells;
  Stages gathered;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const bool needs = is_compute(order[at].kind) && order[at].pairing != Pairing::kSecond;
    if (needs && !repeats(order, at)) {
      const Stages next = next_stages(order, at, std::min(kMaxGatheredStages, stages_left[at]));
      sort_as_dropped(gathered, release);
      for (const std::int32_t stage : gathered)
        if (!contains(next, stage)) cells.push_back(make_cell(OpKind::kReshard, stage));
      std::erase_if(gathered, [&](std::int32_t stage) { return !contains(next, stage); });
      for (const std::int32_t stage :
           next_stages(order, at, std::min(lookahead, stages_left[at]))) {
        if (contains(gathered, stage)) continue;
        gathered.push_back(stage);
        cells.push_back(make_cell(OpKind::kUnshard, stage));
      }
    }
    cells.push_back(order[at]);
  }
  sort_as_dropped(gathered, release);
  for (const std::int32_t stage : gathered) cells.push_back(make_cell(OpKind::kReshard, stage));
  return cells;
}

RankOrder add_reductions(const RankOrder& order) {
  std::map<std::int32_t, std::int64_t> missing;
  for (const Op& op : order) missing[op.stage] += makes_weight_grad(op.kind) ? 1 : 0;
  RankOrder cells;
  Stages complete;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const Op& op = order[at];
    cells.push_back(op);
    if (makes_weight_grad(op.kind) && --missing[op.stage] == 0) complete.push_back(op.stage);
    const bool sends_next = at + 1 < order.size() && is_send(order[at + 1].kind);
    if (op.pairing == Pairing::kFirst || sends_next) continue;
    for (const std::int32_t stage : complete)
      cells.push_back(make_cell(OpKind::kReduceGrad, stage));
    complete.clear();
  }
  return cells;
}

bool reduces_by_rank(const Schedule& schedule) {
  return schedule.pipelines == 1 && schedule.weights.empty();
}

ValidSchedule shard_stages(ValidSchedule given, PytorchRelease release,
                           const std::optional<UnshardLookahead>& lookahead) {
  Schedule schedule = std::move(given).take();
  const std::vector<std::int32_t> ahead = spread_lookahead(
      lookahead.value_or(UnshardLookahead{{static_cast<std::int32_t>(kMaxGatheredStages)}}),
      schedule.shape.ranks);
  schedule.posted.clear();
  for (std::size_t rank = 0; rank < schedule.order.size(); ++rank)
    schedule.posted.push_back(
        add_unshards(schedule.order[rank], release, static_cast<std::size_t>(ahead[rank])));
  if (reduces_by_rank(schedule))
    for (RankOrder& cells : schedule.posted) cells = add_reductions(cells);
  return require_valid(std::move(schedule));
}

}  // namespace bubblescope::inline sim
