// Compares the times of ops with those of their producers in every possible pipeline.
#include "traces/measured/join_pipelines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "traces/measured/align_clocks.h"
#include "traces/measured/kept_recorders.h"
#include "traces/measured/ops_in_order.h"
#include "traces/measured/tensor_peers.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

using OpKey = std::tuple<std::int64_t, bool, std::int32_t>;  // step, forward, micro-batch

/// The ops of one trace that runs one stage.
struct Traced {
  std::size_t recorder = 0;
  std::map<OpKey, std::pair<Nanos, Nanos>> ops;  ///< start and end
};

/// The traces of one place.
using Place = std::vector<Traced>;

bool states_place(const Recorder& recorder) { return recorder.rank || recorder.has_replica; }

/// The ops of every trace; those without a number are counted in their order.
std::vector<Traced> collect_traces(const ObservedTrace& trace) {
  std::vector<Traced> traced(trace.recorders.size());
  OpsInOrder ordered;
  for (const ObservedOp& observed : trace.ops)
    if (observed.op.kind == OpKind::kForward || gives_input_grad(observed.op.kind))
      ordered.push_back(&observed);
  sort_by_start(ordered);
  for (std::size_t at = 0; at < traced.size(); ++at) traced[at].recorder = at;
  std::map<std::tuple<std::int32_t, std::int64_t, bool>, std::int32_t> next;
  for (const ObservedOp* observed : ordered) {
    const bool forward = observed->op.kind == OpKind::kForward;
    const std::int32_t counted = next[{observed->recorder, observed->step, forward}]++;
    const std::int32_t number = observed->numbered ? observed->op.microbatch : counted;
    traced[static_cast<std::size_t>(observed->recorder)].ops[{observed->step, forward, number}] = {
        observed->start, observed->end};
  }
  return traced;
}

/// Counts the forwards of the first step before its first backward.
std::int64_t count_warmup(const Traced& traced) {
  if (traced.ops.empty()) return 0;
  const std::int64_t step = std::get<0>(traced.ops.begin()->first);
  const auto first_backward = traced.ops.find({step, false, 0});
  if (first_backward == traced.ops.end()) return 0;
  std::int64_t forwards = 0;
  for (const auto& [key, span] : traced.ops)
    if (std::get<0>(key) == step && std::get<1>(key) && span.first < first_backward->second.first)
      ++forwards;
  return forwards;
}

/// The traces by place, the first stage's first. Empty if places are not those of a pipeline with
/// one stage per rank, or if each has one trace.
std::vector<Place> find_places(const ObservedTrace& trace) {
  std::map<std::int64_t, Place> by_place;
  std::vector<std::set<std::int32_t>> stages(trace.recorders.size());
  bool by_stage = true;
  for (const ObservedOp& observed : trace.ops) {
    if (!is_compute(observed.op.kind)) continue;
    if (observed.chunk.value_or(0) > 0 || observed.replica != 0) return {};
    by_stage = by_stage && !observed.chunk;
    stages[static_cast<std::size_t>(observed.recorder)].insert(observed.op.stage);
  }
  for (Traced& traced : collect_traces(trace)) {
    const std::set<std::int32_t>& own = stages[traced.recorder];
    if (own.size() != 1) return {};
    const std::int64_t place = by_stage ? *own.begin() : -count_warmup(traced);
    by_place[place].push_back(std::move(traced));
  }
  const std::size_t count = by_place.begin()->second.size();
  std::int64_t expected = by_stage ? 0 : -static_cast<std::int64_t>(by_place.size());
  std::vector<Place> places;
  for (auto& [place, traces] : by_place) {
    if (place != expected++ || traces.size() != count) return {};
    places.push_back(std::move(traces));
  }
  return count > 1 && places.size() > 1 ? places : std::vector<Place>{};
}

/// Whether two traces run every op at the same time. Clocks that are not shared may be apart.
bool are_in_step(const Traced& left, const Traced& right, bool one_clock) {
  if (left.ops.size() != right.ops.size() || left.ops.empty()) return false;
  std::vector<TimeSpan> spans;
  std::vector<TimeSpan> others;
  for (const auto& [key, span] : left.ops) {
    const auto other = right.ops.find(key);
    if (other == right.ops.end()) return false;
    spans.push_back({span.first, span.second});
    others.push_back({other->second.first, other->second.second});
  }
  return run_in_step(spans, others, one_clock ? 0 : find_clock_difference(spans, others));
}

/// Keeps the first of those that run in step.
Place without_twins(const Place& place, bool one_clock) {
  Place kept;
  for (const Traced& traced : place)
    if (std::none_of(kept.begin(), kept.end(),
                     [&](const Traced& other) { return are_in_step(traced, other, one_clock); }))
      kept.push_back(traced);
  return kept;
}

/// Whether two neighbours may be of one pipeline: no op begins before its input ends. If they do
/// not share a clock, by one shift of it: forwards bound it on one side, and backwards on the
/// other.
bool may_be_neighbours(const Traced& before, const Traced& after, bool one_clock) {
  Nanos min_shift = std::numeric_limits<Nanos>::min();
  Nanos max_shift = std::numeric_limits<Nanos>::max();
  for (const auto& [key, span] : after.ops) {
    const auto other = before.ops.find(key);
    if (other == before.ops.end()) return false;
    if (std::get<1>(key))
      min_shift = std::max(min_shift, other->second.second - span.first);
    else
      max_shift = std::min(max_shift, other->second.first - span.second);
  }
  if (before.ops.size() != after.ops.size()) return false;
  if (one_clock) return min_shift <= kClockTolerance && max_shift >= -kClockTolerance;
  return max_shift >= min_shift - kClockTolerance;
}

/// Whether all traces of a place have just one partner each in the next one: [trace] -> partner,
/// empty if not. One by one, a trace with a single partner takes it from the others.
std::vector<std::size_t> match(const Place& place, const Place& next, bool one_clock) {
  std::vector<std::set<std::size_t>> partners(place.size());
  for (std::size_t at = 0; at < place.size(); ++at)
    for (std::size_t other = 0; other < next.size(); ++other)
      if (may_be_neighbours(place[at], next[other], one_clock)) partners[at].insert(other);
  std::vector<std::size_t> matched(place.size(), 0);
  for (std::size_t round = 0; round < place.size(); ++round) {
    const auto single = std::find_if(partners.begin(), partners.end(),
                                     [](const auto& of_one) { return of_one.size() == 1; });
    if (single == partners.end()) return {};
    const std::size_t partner = *single->begin();
    matched[static_cast<std::size_t>(single - partners.begin())] = partner;
    for (std::set<std::size_t>& of_one : partners) of_one.erase(partner);
  }
  return matched;
}

[[noreturn]] void refuse(const ObservedTrace& trace, const std::vector<Place>& places) {
  std::string lists;
  for (std::size_t stage = 0; stage < places.size(); ++stage) {
    std::vector<std::string> names;
    for (const Traced& traced : places[stage])
      names.push_back(trace.recorders[traced.recorder].where);
    lists +=
        fmt::format("{}of stage {} are {}", stage == 0 ? "" : "; ", stage, fmt::join(names, ", "));
  }
  throw Error(fmt::format(
      "the traces are of {} pipelines of {} ranks, and their times leave open which belong "
      "together: {}; give one of each stage, those of one pipeline (in Megatron-LM's and "
      "DeepSpeed's order, ranks of the job that are {} apart)",
      places[0].size(), places.size(), lists, places[0].size()));
}

/// A rank and its replica, for each recorder that is kept.
using PlacesInJob = std::map<std::size_t, std::pair<std::int32_t, std::int32_t>>;

ObservedTrace keep_placed(ObservedTrace trace, const PlacesInJob& places) {
  std::vector<bool> is_kept(trace.recorders.size(), false);
  for (const auto& [recorder, place] : places) {
    trace.recorders[recorder].rank = place.first;
    trace.recorders[recorder].has_replica = true;
    is_kept[recorder] = true;
  }
  const auto set_replicas = [&](auto& list) {
    for (auto& one : list)
      if (const auto place = places.find(static_cast<std::size_t>(one.recorder));
          place != places.end())
        one.replica = place->second.second;
  };
  set_replicas(trace.ops);
  set_replicas(trace.activities);
  return keep_recorders(std::move(trace), is_kept);
}

}  // namespace

RankedTrace join_pipelines(ObservedTrace trace) {
  if (std::any_of(trace.recorders.begin(), trace.recorders.end(), states_place))
    return {std::move(trace)};
  const std::vector<Place> all = find_places(trace);
  if (all.empty()) return {std::move(trace)};
  const bool one_clock = are_on_one_host(trace);
  std::vector<Place> places;
  for (const Place& place : all) places.push_back(without_twins(place, one_clock));
  PlacesInJob placed;
  std::vector<std::size_t> replica(places[0].size());
  for (std::size_t at = 0; at < replica.size(); ++at) replica[at] = at;
  for (std::size_t stage = 0; stage < places.size(); ++stage) {
    if (places[stage].size() != replica.size()) refuse(trace, all);
    for (std::size_t at = 0; at < replica.size(); ++at)
      placed[places[stage][at].recorder] = {static_cast<std::int32_t>(stage),
                                            static_cast<std::int32_t>(replica[at])};
    if (stage + 1 == places.size()) break;
    const std::vector<std::size_t> partner = match(places[stage], places[stage + 1], one_clock);
    if (partner.empty()) refuse(trace, all);
    std::vector<std::size_t> of_next(replica.size());
    for (std::size_t at = 0; at < partner.size(); ++at) of_next[partner[at]] = replica[at];
    replica = std::move(of_next);
  }
  const std::size_t twins = trace.recorders.size() - placed.size();
  trace.remarks.notes.push_back(
      fmt::format("the traces are sorted into {} of {}: other ways to join them "
                  "are excluded, as ops would begin before their input",
                  counted(std::ssize(replica), "pipeline"), counted(std::ssize(places), "rank")));
  if (twins > 0)
    trace.remarks.notes.push_back(fmt::format(
        "{} left out, with all ops at the times of another one, as tensor-parallel ranks have them",
        counted(static_cast<std::int64_t>(twins), "trace")));
  return {keep_placed(std::move(trace), placed), true};
}

}  // namespace bubblescope::traces
