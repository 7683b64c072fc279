// Compares the traces with the ranks and stages that there must be.
#include "traces/measured/missing_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "traces/measured/kept_recorders.h"
#include "traces/measured/number_ranges.h"
#include "traces/measured/rank_numbers.h"

namespace bubblescope::traces {

namespace {

struct GivenAndMissing {
  NumberRanges given;
  NumberRanges missing;
};

/// Divides 0 .. count-1 into the numbers that are in the set and the others. Files may state ranks
/// beyond their own count; these are given, and leave no others missing.
GivenAndMissing divide(const std::set<std::int64_t>& given, std::int64_t count) {
  GivenAndMissing divided;
  std::int64_t next = 0;
  for (const std::int64_t number : given) {
    divided.missing.add(next, std::min(number, count) - 1);
    divided.given.add(number, number);
    next = number + 1;
  }
  divided.missing.add(next, count - 1);
  return divided;
}

/// The ranks with traces of one pipeline, or of the whole job where files state no pipeline.
struct Known {
  std::set<std::int64_t> ranks;
  std::int64_t unnumbered = 0;  ///< traces that do not state their rank
  std::int64_t peers = 0;
  bool is_pipeline = false;
};

/// Returns the ranks of every replica that files state; of replica -1 where they state none.
std::map<std::int32_t, Known> find_known_ranks(const ObservedTrace& trace) {
  const std::vector<std::int32_t> replica = find_replicas(trace);
  std::map<std::int32_t, Known> all;
  for (std::size_t at = 0; at < trace.recorders.size(); ++at) {
    const Recorder& recorder = trace.recorders[at];
    Known& known = all[recorder.has_replica ? replica[at] : -1];
    known.is_pipeline = recorder.has_replica;
    known.peers = std::max(known.peers, recorder.peers);
    if (recorder.rank)
      known.ranks.insert(*recorder.rank);
    else
      ++known.unnumbered;
  }
  return all;
}

/// Returns a text such as "2 of the 4 ranks of the job have no trace".
std::string describe_untraced(std::int64_t untraced, const std::string& all) {
  return fmt::format("{} of the {} {} no trace", untraced, all, untraced == 1 ? "has" : "have");
}

/// Returns a text such as "2 of the 4 ranks of the job have no trace: 1, 3".
std::string describe_untraced(const NumberRanges& untraced, const std::string& all) {
  return fmt::format("{}: {}", describe_untraced(untraced.count(), all), untraced.text());
}

std::int64_t count_traced(const Known& known) {
  return static_cast<std::int64_t>(known.ranks.size()) + known.unnumbered;
}

bool lacks_ranks(const Known& known) { return known.peers > count_traced(known); }

std::string describe_missing(const Known& known, std::int32_t replica, bool are_several) {
  std::string all =
      fmt::format("{} ranks of the {}", known.peers, known.is_pipeline ? "pipeline" : "job");
  if (known.is_pipeline && are_several)
    all += fmt::format(" that begins on rank {} of the job", replica);
  if (known.unnumbered > 0) return describe_untraced(known.peers - count_traced(known), all);
  return describe_untraced(divide(known.ranks, known.peers).missing, all);
}

/// Compares the ranks with the number that the files state.
std::optional<std::string> describe_missing_peers(const ObservedTrace& trace) {
  const std::map<std::int32_t, Known> all = find_known_ranks(trace);
  for (const auto& [replica, known] : all)
    if (lacks_ranks(known)) return describe_missing(known, replica, all.size() > 1);
  return {};
}

constexpr const char* kUnseenReplicas =
    "the time that the reported replicas wait for the missing ones counts as time outside the "
    "pipeline, not as communication, and stays as it is in predictions; causes in the missing "
    "replicas are not seen";

/// `which` says of each what it lacks; `noun` is the word for one of them.
std::string describe_left_out(const std::vector<std::string>& which, const char* noun) {
  const bool are_several = which.size() > 1;
  return fmt::format("{}; {} {}{} left out of the report on the others: {}",
                     fmt::join(which, ", and "), are_several ? "these" : "this", noun,
                     are_several ? "s are" : " is", kUnseenReplicas);
}

/// Finds stages that no trace runs although a later one is run.
std::optional<std::string> describe_missing_stages(const ObservedTrace& trace) {
  std::set<std::int64_t> stages;
  for (const ObservedOp& observed : trace.ops) {
    if (observed.chunk) return {};  // stages follow from the ranks that are given
    if (is_compute(observed.op.kind)) stages.insert(observed.op.stage);
  }
  if (stages.empty()) return {};
  const auto [run, missing] = divide(stages, *stages.rbegin() + 1);
  if (missing.empty()) return {};
  return fmt::format(
      "the traces that are given run stage{} {}, and none runs {}, so traces of ranks are missing",
      run.are_several() ? "s" : "", run.text(), missing.text());
}

constexpr const char* kDevicesOfRanks =
    ", by the numbers of their devices (if the pipeline runs on these devices alone, name them "
    "after its ranks instead: 'rank 0' and so on)";

/// Finds ranks that no trace is of although there is one of a later rank.
std::optional<std::string> describe_missing_numbers(const ObservedTrace& trace) {
  if (!state_ranks(trace.recorders)) return {};
  std::set<std::int64_t> ranks;
  for (const Recorder& recorder : trace.recorders) ranks.insert(*recorder.rank);
  const auto [given, missing] = divide(ranks, *ranks.rbegin() + 1);
  if (state_stages(trace) || missing.empty()) return {};
  const bool are_devices = std::all_of(trace.recorders.begin(), trace.recorders.end(),
                                       [](const Recorder& recorder) { return recorder.is_device; });
  return fmt::format("there are traces of rank{} {}, but none of {}{}",
                     given.are_several() ? "s" : "", given.text(), missing.text(),
                     are_devices ? kDevicesOfRanks : "");
}

}  // namespace

std::optional<std::string> describe_missing_ranks(const ObservedTrace& trace) {
  std::optional<std::string> missing = describe_missing_peers(trace);
  if (!missing) missing = describe_missing_stages(trace);
  return missing ? missing : describe_missing_numbers(trace);
}

ObservedTrace without_replicas(ObservedTrace trace, const std::set<std::int32_t>& replicas) {
  if (replicas.empty()) return trace;
  std::vector<bool> is_kept(trace.recorders.size(), true);
  for (const ObservedOp& observed : trace.ops)
    if (replicas.contains(observed.replica))
      is_kept[static_cast<std::size_t>(observed.recorder)] = false;
  return keep_recorders(std::move(trace), is_kept);
}

IncompleteReplicas find_incomplete_replicas(const ObservedTrace& trace) {
  const std::map<std::int32_t, Known> all = find_known_ranks(trace);
  std::set<std::int32_t> incomplete;
  for (const auto& [replica, known] : all)
    if (lacks_ranks(known)) incomplete.insert(replica);
  if (incomplete.empty() || incomplete.size() == all.size()) return {};
  std::vector<std::string> which;
  for (const std::int32_t replica : incomplete)
    which.push_back(describe_missing(all.at(replica), replica, true));
  return {std::move(incomplete), describe_left_out(which, "pipeline")};
}

IncompleteReplicas find_incomplete_replicas(const std::map<StepKey, StepOps>& steps) {
  std::map<std::int32_t, std::set<std::int32_t>> ranks_of;
  std::set<std::int32_t> all;
  for (const auto& [key, step] : steps)
    for (const ObservedOp& observed : step.computes) {
      ranks_of[key.first].insert(observed.recorder);
      all.insert(observed.recorder);
    }
  std::vector<std::string> which;
  std::set<std::int32_t> incomplete;
  for (const auto& [replica, ranks] : ranks_of) {
    std::vector<std::int32_t> missing;
    std::set_difference(all.begin(), all.end(), ranks.begin(), ranks.end(),
                        std::back_inserter(missing));
    if (missing.empty()) continue;
    incomplete.insert(replica);
    which.push_back(fmt::format("of replica {}, {}", replica, describe_stand_ins(missing)));
  }
  if (incomplete.empty() || incomplete.size() == ranks_of.size()) return {};
  return {std::move(incomplete), describe_left_out(which, "replica")};
}

std::optional<std::string> describe_missing_replicas(const ObservedTrace& trace,
                                                     std::int64_t left_out) {
  std::set<std::int64_t> given;  // places in data-parallel groups, where all traces state theirs
  std::int64_t count = 0;
  std::int64_t outsiders = 0;
  bool states_places = true;
  for (const Recorder& recorder : trace.recorders) {
    count = std::max(count, recorder.replicas);
    outsiders = std::max(outsiders, recorder.outsiders);
    states_places = states_places && recorder.data_rank;
    if (recorder.data_rank) given.insert(*recorder.data_rank);
  }
  std::set<std::int32_t> pipelines;
  for (const ObservedOp& observed : trace.ops) pipelines.insert(observed.replica);
  const std::int64_t traced = std::ssize(pipelines) + left_out;
  if (count > traced) {
    const std::string all = fmt::format("{} data-parallel replicas of the job", count);
    const bool are_known = states_places && std::ssize(given) == traced;
    return fmt::format("{}; {}",
                       are_known ? describe_untraced(divide(given, count).missing, all)
                                 : describe_untraced(count - traced, all),
                       kUnseenReplicas);
  }
  if (count > 0 || outsiders == 0) return {};
  const Recorder& first = trace.recorders.front();
  if (traced * first.peers >= outsiders + first.peers) return {};
  return fmt::format(
      "the job has {} ranks, of which those of {} pipeline{} of {} are given; if the others are "
      "replicas, and not tensor-parallel peers of these, {}",
      outsiders + first.peers, traced, traced > 1 ? "s" : "", first.peers, kUnseenReplicas);
}

std::string describe_report_of_some(const std::string& missing) {
  return missing +
         "; the ops of the others, their order, times and busy times, are shown as recorded and "
         "under the ranks' own numbers; what they waited for is unknown, so there is no bubble, "
         "no cause of idle time, no slowdown and no prediction; give the traces of all ranks";
}

std::string describe_refusal_of_some(const std::string& missing, const std::string& why) {
  return fmt::format(
      "{}; without their traces the others make no step that could be shown ({}); give the traces "
      "of all ranks",
      missing, why);
}

std::string describe_stand_ins(const std::vector<std::int32_t>& ranks) {
  NumberRanges missing;
  for (const std::int32_t rank : ranks) missing.add(rank, rank);
  return fmt::format("the trace{} of rank{} {} {} missing", missing.are_several() ? "s" : "",
                     missing.are_several() ? "s" : "", missing.text(),
                     missing.are_several() ? "are" : "is");
}

}  // namespace bubblescope::traces
