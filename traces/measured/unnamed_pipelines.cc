// Compares groups of ranks with the messages that every rank receives.
#include "traces/measured/unnamed_pipelines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "traces/measured/number_ranges.h"

namespace bubblescope::traces {

namespace {

using Ranks = std::vector<std::int64_t>;  // of the job, in order

/// A rank's part in its pipeline.
enum class Part : std::uint8_t { kFirst, kMiddle, kLast };

/// By rank of the job: the parts that its messages leave possible, if they show any.
using Parts = std::map<std::int64_t, std::set<Part>>;
/// The ranks of its pipeline, by rank of the job.
using Pipelines = std::map<std::int64_t, Ranks>;

/// Ops and the messages that they waited for.
struct Counts {
  std::int64_t forwards = 0;
  std::int64_t backwards = 0;
  std::int64_t activations = 0;
  std::int64_t gradients = 0;
};

std::set<Part> find_possible_parts(const Counts& counts) {
  const bool receives_activations = 2 * counts.activations > counts.forwards;
  const bool receives_gradients = 2 * counts.gradients > counts.backwards;
  if (counts.backwards == 0 && counts.activations == 0) return {Part::kFirst};
  if (counts.backwards == 0 && receives_activations) return {Part::kMiddle, Part::kLast};
  if (receives_activations && receives_gradients) return {Part::kMiddle};
  if (receives_gradients && counts.activations == 0) return {Part::kFirst};
  if (receives_activations && counts.gradients == 0) return {Part::kLast};
  return {};
}

Parts find_parts(const ObservedTrace& trace) {
  std::vector<Counts> counts(trace.recorders.size());
  for (const ObservedOp& observed : trace.ops) {
    Counts& own = counts[static_cast<std::size_t>(observed.recorder)];
    if (observed.op.kind == OpKind::kForward) ++own.forwards;
    if (gives_input_grad(observed.op.kind)) ++own.backwards;
    if (observed.op.kind == OpKind::kRecvForward) ++own.activations;
    if (observed.op.kind == OpKind::kRecvBackward) ++own.gradients;
  }
  Parts parts;
  for (std::size_t at = 0; at < counts.size(); ++at)
    parts[*trace.recorders[at].rank] = find_possible_parts(counts[at]);
  return parts;
}

/// Whether every recorder has a rank of its own in the job, and the stages of its ops follow from
/// that rank.
bool count_job(const ObservedTrace& trace) {
  std::set<std::int32_t> ranks;
  for (const Recorder& recorder : trace.recorders)
    if (recorder.has_replica || !recorder.rank || recorder.peers < 4 || recorder.is_process ||
        !ranks.insert(*recorder.rank).second)
      return false;
  return std::all_of(trace.ops.begin(), trace.ops.end(), [&](const ObservedOp& observed) {
    return observed.chunk || recorder_of(trace, observed).has_own_stage;
  });
}

/// Whether the parts of the ranks are those of one pipeline. Ranks without a trace may have any.
bool may_be_pipeline(const Ranks& ranks, const Parts& parts) {
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    const auto known = parts.find(ranks[at]);
    if (known == parts.end()) continue;
    const Part expected =
        at == 0 ? Part::kFirst : (at + 1 == ranks.size() ? Part::kLast : Part::kMiddle);
    if (!known->second.contains(expected)) return false;
  }
  return true;
}

/// Returns the only group of a rank that may be its pipeline; empty unless there is exactly one.
Ranks choose_group(const Recorder& recorder, const Parts& parts) {
  std::set<Ranks> possible;
  for (Ranks ranks : recorder.groups) {
    std::sort(ranks.begin(), ranks.end());
    if (ranks.size() > 1 && std::ssize(ranks) < recorder.peers && may_be_pipeline(ranks, parts))
      possible.insert(ranks);
  }
  return possible.size() == 1 ? *possible.begin() : Ranks{};
}

/// The ranks that a rank's messages reach, directly or through others.
Ranks find_reached(std::int64_t rank, const std::map<std::int64_t, std::set<std::int64_t>>& links) {
  std::set<std::int64_t> reached{rank};
  Ranks open{rank};
  while (!open.empty()) {
    const auto own = links.find(open.back());
    open.pop_back();
    if (own == links.end()) continue;
    for (const std::int64_t partner : own->second)
      if (reached.insert(partner).second) open.push_back(partner);
  }
  return {reached.begin(), reached.end()};
}

/// Whether every rank exchanges messages with the ranks beside it only; the first and the last are
/// beside each other where ranks have several stages.
bool is_chain(const Ranks& ranks, const std::map<std::int64_t, std::set<std::int64_t>>& links) {
  const std::ptrdiff_t size = std::ssize(ranks);
  for (std::ptrdiff_t at = 0; at < size; ++at) {
    const auto own = links.find(ranks[static_cast<std::size_t>(at)]);
    if (own == links.end()) continue;
    for (const std::int64_t partner : own->second) {
      const std::ptrdiff_t other =
          std::lower_bound(ranks.begin(), ranks.end(), partner) - ranks.begin();
      const std::ptrdiff_t apart = other > at ? other - at : at - other;
      if (apart != 1 && apart != size - 1) return false;
    }
  }
  return true;
}

/// The pipelines between whose ranks messages go; empty where they show none, or only one.
Pipelines find_by_partners(const ObservedTrace& trace) {
  std::map<std::int64_t, std::set<std::int64_t>> links;
  for (const Recorder& recorder : trace.recorders)
    for (const std::int64_t partner : recorder.partners) {
      links[*recorder.rank].insert(partner);
      links[partner].insert(*recorder.rank);
    }
  Pipelines found;
  for (const Recorder& recorder : trace.recorders) {
    Ranks ranks = find_reached(*recorder.rank, links);
    if (ranks.size() < 2 || std::ssize(ranks) >= recorder.peers || !is_chain(ranks, links))
      return {};
    found[*recorder.rank] = std::move(ranks);
  }
  return found;
}

/// The pipelines that are groups; empty unless every rank has one.
Pipelines find_by_groups(const ObservedTrace& trace, const Parts& parts) {
  Pipelines found;
  for (const Recorder& recorder : trace.recorders) {
    Ranks ranks = choose_group(recorder, parts);
    if (ranks.empty()) return {};
    found[*recorder.rank] = std::move(ranks);
  }
  return found;
}

/// Whether the pipelines are of one size, and no rank is in two of them.
bool are_apart(const Pipelines& pipelines) {
  const std::size_t size = pipelines.begin()->second.size();
  std::map<std::int64_t, const Ranks*> pipeline_of;
  for (const auto& [_, ranks] : pipelines) {
    if (ranks.size() != size) return false;
    for (const std::int64_t rank : ranks)
      if (*pipeline_of.emplace(rank, &ranks).first->second != ranks) return false;
  }
  return true;
}

std::string list_ranks(const Parts& parts, Part wanted) {
  NumberRanges ranges;
  for (const auto& [rank, part] : parts)
    if (part.contains(wanted)) ranges.add(rank, rank);
  return ranges.text();
}

/// Throws Error where the ranks of a whole job begin and end several pipelines.
void expect_one_pipeline(const ObservedTrace& trace, const Parts& parts) {
  std::map<Part, std::int64_t> counts;
  for (const auto& [_, part] : parts) {
    if (part.size() != 1) return;
    ++counts[*part.begin()];
  }
  const std::int64_t pipelines = counts[Part::kFirst];
  if (pipelines < 2 || counts[Part::kLast] != pipelines || std::ssize(parts) % pipelines != 0 ||
      std::ssize(parts) < trace.recorders.front().peers)
    return;
  throw Error(fmt::format(
      "{}: the {} ranks are {} pipelines: by their messages, ranks {} begin one and ranks {} end "
      "one, and no process group says which of them belong together; state the stage of every op "
      "('PP:0F3', by record_function), or give the traces of one pipeline only",
      trace.recorders.front().where, parts.size(), pipelines, list_ranks(parts, Part::kFirst),
      list_ranks(parts, Part::kLast)));
}

ObservedTrace place_in(ObservedTrace trace, const Pipelines& pipelines) {
  std::vector<std::int32_t> replicas;
  for (Recorder& recorder : trace.recorders) {
    const Ranks& ranks = pipelines.at(*recorder.rank);
    const auto place = std::lower_bound(ranks.begin(), ranks.end(), *recorder.rank);
    recorder.rank = static_cast<std::int32_t>(place - ranks.begin());
    recorder.has_replica = recorder.is_by_job_rank = true;
    recorder.replicas = recorder.peers / std::ssize(ranks);
    recorder.peers = std::ssize(ranks);
    replicas.push_back(static_cast<std::int32_t>(ranks.front()));
  }
  for (ObservedOp& observed : trace.ops) {
    observed.replica = replicas[static_cast<std::size_t>(observed.recorder)];
    if (!observed.chunk) observed.op.stage = *recorder_of(trace, observed).rank;
  }
  for (ObservedActivity& activity : trace.activities)
    activity.replica = replicas[static_cast<std::size_t>(activity.recorder)];
  return trace;
}

}  // namespace

ObservedTrace place_in_unnamed_pipelines(ObservedTrace trace) {
  if (trace.recorders.empty() || !count_job(trace)) return trace;
  Pipelines pipelines = find_by_partners(trace);
  const Parts parts = find_parts(trace);
  if (pipelines.empty()) pipelines = find_by_groups(trace, parts);
  if (!pipelines.empty() && are_apart(pipelines)) return place_in(std::move(trace), pipelines);
  expect_one_pipeline(trace, parts);
  return trace;
}

}  // namespace bubblescope::traces
