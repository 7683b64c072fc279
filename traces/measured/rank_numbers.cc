// Compares the numbers and stages of recorders with those of whole pipelines.
#include "traces/measured/rank_numbers.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "traces/measured/distinct_numbers.h"

namespace bubblescope::traces {

namespace {

constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kMaxMissing = 64;  ///< more ranks are rather those of other pipelines

/// The first stage that every recorder runs; kNone where its ops do not state their stages.
std::vector<std::int32_t> find_first_stages(const ObservedTrace& trace) {
  std::vector<std::int32_t> first(trace.recorders.size(), kNone);
  for (const ObservedOp& observed : trace.ops) {
    std::int32_t& stage = first[observed.recorder];
    if (!observed.chunk && is_compute(observed.op.kind)) stage = std::min(stage, observed.op.stage);
  }
  return first;
}

bool has_all(const std::vector<std::int32_t>& numbers) {
  return std::find(numbers.begin(), numbers.end(), kNone) == numbers.end();
}

/// Whether no replica has a stage twice.
bool differ_within(const std::vector<std::int32_t>& replicas,
                   const std::vector<std::int32_t>& stages) {
  std::set<std::pair<std::int32_t, std::int32_t>> seen;
  for (std::size_t at = 0; at < stages.size(); ++at)
    if (!seen.emplace(replicas[at], stages[at]).second) return false;
  return true;
}

/// Returns the ranks that recorders state, and kNone where one states none. If the numbers are
/// those of processes and stages are known, all are kNone: stages order ranks better.
std::vector<std::int32_t> find_stated_ranks(const ObservedTrace& trace) {
  const std::vector<std::int32_t> stages = find_first_stages(trace);
  if (are_of_processes(trace.recorders) && has_all(stages) &&
      differ_within(find_replicas(trace), stages))
    return std::vector<std::int32_t>(trace.recorders.size(), kNone);
  std::vector<std::int32_t> ranks;
  for (const Recorder& recorder : trace.recorders) ranks.push_back(recorder.rank.value_or(kNone));
  return ranks;
}

/// Numbers ranks without gaps. If only some traces state their rank, all are placed by their
/// stages.
RankNumbers number_without_gaps(const std::vector<std::int32_t>& stated,
                                const std::vector<std::int32_t>& first_stage,
                                const std::vector<std::int32_t>& replicas) {
  using Place = std::tuple<std::int32_t, std::int32_t, std::size_t>;
  const bool by_stage =
      !has_all(stated) && differ_within(replicas, first_stage) && has_all(first_stage);
  std::vector<Place> places;
  for (std::size_t at = 0; at < stated.size(); ++at) {
    const std::int32_t rank = by_stage ? kNone : stated[at];
    const bool has_rank = rank != kNone;
    places.push_back({rank, has_rank ? 0 : first_stage[at], has_rank || by_stage ? 0 : at});
  }
  std::vector<Place> ordered = places;
  std::sort(ordered.begin(), ordered.end());
  ordered.erase(std::unique(ordered.begin(), ordered.end()), ordered.end());
  RankNumbers numbers{{}, static_cast<std::int32_t>(ordered.size())};
  for (const Place& place : places)
    numbers.of_recorder.push_back(static_cast<std::int32_t>(
        std::lower_bound(ordered.begin(), ordered.end(), place) - ordered.begin()));
  return numbers;
}

StagesByRank collect_stages(const ObservedTrace& trace, const std::vector<std::int32_t>& ranks) {
  StagesByRank stages;
  for (const ObservedOp& observed : trace.ops)
    if (is_compute(observed.op.kind)) stages[ranks[observed.recorder]].insert(observed.op.stage);
  return stages;
}

bool have_gaps(const StagesByRank& placed) {
  std::set<std::int32_t> run;
  for (const auto& [_, stages] : placed) run.insert(stages.begin(), stages.end());
  return !run.empty() && *run.rbegin() + 1 != std::ssize(run);
}

/// Whether every rank that is known has just these stages.
template <class StagesOf>
std::optional<StagesByRank> place_all(const StagesByRank& known, std::int32_t ranks,
                                      StagesOf stages_of) {
  StagesByRank placed;
  for (std::int32_t rank = 0; rank < ranks; ++rank) placed[rank] = stages_of(rank);
  for (const auto& [rank, stages] : known)
    if (placed[rank] != stages) return {};
  return placed;
}

/// The stages of all ranks where these are placed in a loop or in a V; nullopt elsewhere.
std::optional<StagesByRank> place_regularly(const StagesByRank& known, std::int32_t ranks) {
  std::size_t chunks = 0;
  for (const auto& [_, stages] : known) chunks = std::max(chunks, stages.size());
  const auto in_loop = [&](std::int32_t rank) {
    std::set<std::int32_t> stages;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk)
      stages.insert(static_cast<std::int32_t>(chunk) * ranks + rank);
    return stages;
  };
  const auto in_v = [&](std::int32_t rank) {
    return std::set<std::int32_t>{rank, 2 * ranks - 1 - rank};
  };
  std::optional<StagesByRank> placed = place_all(known, ranks, in_loop);
  return placed || chunks != 2 ? placed : place_all(known, ranks, in_v);
}

/// The number of ranks with which these numbers and stages fit; empty where none does.
std::optional<std::int32_t> find_rank_count(const StagesByRank& known) {
  const std::int32_t min_ranks = known.rbegin()->first + 1;
  if (min_ranks - std::ssize(known) > kMaxMissing) return {};
  for (std::int32_t ranks = min_ranks; ranks <= min_ranks + kMaxMissing; ++ranks)
    if (place_regularly(known, ranks)) return ranks;
  if (complete_placement(known, min_ranks)) return min_ranks;
  return {};
}

/// The number of ranks with those after the last that is known, where files state it: they must
/// mean ranks of this pipeline.
std::int32_t count_ranks(const ObservedTrace& trace, std::int32_t known) {
  std::int64_t count = known;
  for (const Recorder& recorder : trace.recorders) count = std::max(count, recorder.peers);
  return static_cast<std::int32_t>(count - known <= kMaxMissing ? count : known);
}

/// Counts the ranks after the last one that has a trace.
RankNumbers add_last_ranks(RankNumbers numbers, const std::vector<std::int32_t>& stated,
                           const ObservedTrace& trace) {
  if (numbers.of_recorder != stated || !are_distinct(stated)) return numbers;
  const std::int32_t ranks = count_ranks(trace, numbers.ranks);
  if (place_regularly(collect_stages(trace, stated), ranks)) numbers.ranks = ranks;
  return numbers;
}

}  // namespace

bool are_of_processes(const std::vector<Recorder>& recorders) {
  return !state_ranks(recorders) &&
         std::all_of(recorders.begin(), recorders.end(),
                     [](const Recorder& recorder) { return recorder.is_process; });
}

std::optional<StagesByRank> complete_placement(const StagesByRank& known, std::int32_t ranks) {
  if (std::optional<StagesByRank> placed = place_regularly(known, ranks)) return placed;
  if (std::ssize(known) + 1 != ranks || !have_gaps(known)) return {};
  std::set<std::int32_t> left;
  std::int32_t last = 0;
  for (const auto& [_, stages] : known) last = std::max(last, *stages.rbegin());
  for (std::int32_t stage = 0; stage < last; ++stage) left.insert(stage);
  for (const auto& [_, stages] : known)
    for (const std::int32_t stage : stages) left.erase(stage);
  StagesByRank placed = known;
  for (std::int32_t rank = 0; rank < ranks; ++rank) placed.emplace(rank, left);
  return placed;
}

bool state_ranks(const std::vector<Recorder>& recorders) {
  const auto states = [](const Recorder& recorder) { return recorder.rank.has_value(); };
  const auto is_certain = [](const Recorder& recorder) {
    return !recorder.is_process || recorder.is_device || recorder.rank == 0;
  };
  return std::all_of(recorders.begin(), recorders.end(), states) &&
         std::any_of(recorders.begin(), recorders.end(), is_certain);
}

bool state_stages(const ObservedTrace& trace) {
  return std::none_of(trace.ops.begin(), trace.ops.end(), [](const ObservedOp& observed) {
    return is_compute(observed.op.kind) && observed.chunk;
  });
}

std::vector<std::int32_t> find_replicas(const ObservedTrace& trace) {
  std::vector<std::int32_t> replicas(trace.recorders.size(), 0);
  for (const ObservedOp& observed : trace.ops)
    replicas[static_cast<std::size_t>(observed.recorder)] = observed.replica;
  return replicas;
}

RankNumbers number_ranks(const ObservedTrace& trace) {
  const std::vector<std::int32_t> stated = find_stated_ranks(trace);
  const std::vector<std::int32_t> first_stage = find_first_stages(trace);
  RankNumbers dense = number_without_gaps(stated, first_stage, find_replicas(trace));
  if (!has_all(first_stage)) {
    if (!state_ranks(trace.recorders)) return dense;
    const std::int32_t min_ranks = 1 + *std::max_element(stated.begin(), stated.end());
    if (min_ranks - dense.ranks > kMaxMissing) return dense;
    return {stated, count_ranks(trace, min_ranks)};
  }
  if (!have_gaps(collect_stages(trace, dense.of_recorder)))
    return add_last_ranks(std::move(dense), stated, trace);
  for (const std::vector<std::int32_t>& own : {stated, first_stage}) {
    if (!has_all(own)) continue;
    if (const auto ranks = find_rank_count(collect_stages(trace, own)))
      return add_last_ranks({own, *ranks}, stated, trace);
  }
  return dense;
}

}  // namespace bubblescope::traces
