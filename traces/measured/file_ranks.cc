// Compares the processes, stages and names of files.
#include "traces/measured/file_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "traces/measured/rank_numbers.h"
#include "traces/measured/rank_words.h"

namespace bubblescope::traces {

namespace {

bool is_process(const Recorder& recorder) { return recorder.is_process; }

std::set<std::string> files_of(const ObservedTrace& trace) {
  std::set<std::string> files;
  for (const Recorder& recorder : trace.recorders) files.insert(recorder.where);
  return files;
}

/// Whether the numbers of all processes are known and differ within the replicas that are stated.
bool differ_within_replicas(const ObservedTrace& trace) {
  const std::vector<std::int32_t> replicas = find_replicas(trace);
  std::set<std::pair<std::int32_t, std::int32_t>> numbers;
  for (std::size_t at = 0; at < trace.recorders.size(); ++at) {
    const Recorder& recorder = trace.recorders[at];
    const std::int32_t replica = recorder.has_replica ? replicas[at] : -1;
    if (!recorder.rank || !numbers.emplace(replica, *recorder.rank).second) return false;
  }
  return true;
}

bool has_first(const std::vector<Recorder>& recorders) {
  return std::any_of(recorders.begin(), recorders.end(),
                     [](const Recorder& recorder) { return recorder.rank == 0; });
}

std::string name_in(const std::string& path) { return path.substr(path.find_last_of("/\\") + 1); }

/// Returns the numbers of a name in their order, each with all of the name up to it.
std::vector<std::pair<std::string, std::string>> split_numbers(const std::string& name) {
  constexpr const char* kDigits = "0123456789";
  std::vector<std::pair<std::string, std::string>> numbers;
  for (std::size_t at = name.find_first_of(kDigits); at != name.npos;) {
    const std::size_t end = std::min(name.find_first_not_of(kDigits, at), name.size());
    numbers.emplace_back(name.substr(0, at), name.substr(at, end - at));
    at = name.find_first_of(kDigits, end);
  }
  return numbers;
}

/// Returns the text before the n-th number and that number, as in "rank3"; empty without it.
std::string up_to_number(const std::string& name, std::size_t which) {
  const auto numbers = split_numbers(name);
  if (which >= numbers.size()) return {};
  const std::string before = which == 0 ? "" : numbers[which - 1].first + numbers[which - 1].second;
  return numbers[which].first.substr(before.size()) + numbers[which].second;
}

/// The rank of every file, by the one number in which their names differ; nothing where there is no
/// such number, or where it counts something else.
std::map<std::string, NamedNumber> rank_by_names(const std::set<std::string>& files) {
  std::map<std::string, NamedNumber> found;
  const std::size_t count = split_numbers(name_in(*files.begin())).size();
  for (std::size_t which = 0; which < count; ++which) {
    std::map<std::string, NamedNumber> ranks;
    std::set<std::string> texts;
    std::set<std::int32_t> numbers;
    for (const std::string& file : files) {
      const std::string text = up_to_number(name_in(file), which);
      texts.insert(text);
      if (const std::optional<NamedNumber> number = find_rank_number(text)) {
        ranks.emplace(file, *number);
        numbers.insert(number->number);
      }
    }
    if (texts.size() == 1) continue;
    if (!found.empty() || numbers.size() != files.size()) return {};
    found = std::move(ranks);
  }
  return found;
}

/// Gives each recorder the number of its file; false where there is none.
bool rank_by_files(ObservedTrace& trace, const std::set<std::string>& files) {
  if (trace.recorders.size() != files.size()) return false;
  const std::map<std::string, NamedNumber> ranks = rank_by_names(files);
  if (ranks.empty()) return false;
  std::string names;
  std::map<std::int32_t, std::string> ordered;
  for (Recorder& recorder : trace.recorders) {
    const NamedNumber& named = ranks.at(recorder.where);
    recorder.rank = named.number;
    recorder.is_process = !named.is_rank;
    recorder.is_device = named.is_device;
    ordered[named.number] = name_in(recorder.where);
  }
  constexpr std::size_t kShown = 4;
  std::size_t shown = 0;
  for (const auto& [_, name] : ordered) {
    if (shown++ < kShown) names += (names.empty() ? "" : ", ") + name;
  }
  trace.remarks.doubts.insert(
      trace.remarks.doubts.begin(),
      fmt::format("no file states its rank, so the numbers in the names of the {} files count as "
                  "ranks: {}{}",
                  files.size(), names, ordered.size() > kShown ? " ..." : ""));
  return true;
}

/// Whether each file has a process for every rank, and all run the same stages.
bool are_whole_pipelines(const ObservedTrace& trace) {
  std::map<std::string, std::set<std::int32_t>> ranks;
  std::map<std::string, std::set<std::int32_t>> stages;
  std::size_t count = 0;
  for (const Recorder& recorder : trace.recorders) {
    if (!recorder.rank) return false;
    ranks[recorder.where].insert(*recorder.rank);
    ++count;
  }
  for (const ObservedOp& observed : trace.ops)
    if (is_compute(observed.op.kind))
      stages[recorder_of(trace, observed).where].insert(observed.op.stage);
  const std::set<std::int32_t>& first = ranks.begin()->second;
  const std::set<std::int32_t>& first_stages = stages[ranks.begin()->first];
  if (first.size() < 2 || count != ranks.size() * first.size()) return false;
  return std::all_of(ranks.begin(), ranks.end(), [&](const auto& one) {
    return one.second == first && stages[one.first] == first_stages;
  });
}

/// Numbers the replicas that are a file each.
void separate_pipelines(ObservedTrace& trace) {
  std::map<std::string, std::int32_t> replicas;  // in the order in which the files were given
  for (const Recorder& recorder : trace.recorders)
    replicas.emplace(recorder.where, static_cast<std::int32_t>(replicas.size()));
  const auto number = [&](auto& observed) {
    observed.replica = replicas.at(recorder_of(trace, observed).where);
  };
  std::for_each(trace.ops.begin(), trace.ops.end(), number);
  std::for_each(trace.activities.begin(), trace.activities.end(), number);
}

[[noreturn]] void refuse(const ObservedTrace& trace, std::size_t files, const std::string& why) {
  const ObservedOp& first = trace.ops.front();
  throw Error(fmt::format(
      "nothing tells the ranks of {} files apart: {} ({} in {}); state the rank in args.pp_rank of "
      "every op, in the names of the processes ('rank 0'), by a rule with \"rank\", or by a number "
      "in the name of each file (rank0.json)",
      files, why, to_string(first.op), recorder_of(trace, first).where));
}

void doubt_numbers(ObservedTrace& trace) {
  trace.remarks.doubts.insert(trace.remarks.doubts.begin(),
                              "no file states its rank, so the processes of all files count as "
                              "ranks in the order of their numbers");
}

/// Replaces the numbers of processes where they say nothing across files.
void rank_processes_of_files(ObservedTrace& trace, const std::set<std::string>& files) {
  if (std::any_of(trace.recorders.begin(), trace.recorders.end(),
                  [](const Recorder& recorder) { return recorder.is_thread; }))
    refuse(trace, files.size(),
           "forwards lie on several threads of a process, and either these or the files may be the "
           "ranks");
  const bool are_numbered = differ_within_replicas(trace);
  if (are_numbered && (has_first(trace.recorders) || state_stages(trace))) return;
  if (!state_stages(trace)) {
    if (rank_by_files(trace, files)) return;
    if (are_numbered) return doubt_numbers(trace);
    refuse(trace, files.size(),
           "their processes have the same numbers, and their ops state no stage");
  }
  if (are_whole_pipelines(trace)) return separate_pipelines(trace);
  for (Recorder& recorder : trace.recorders) recorder.rank.reset();
}

/// Says that all files run one and the same stage.
std::optional<std::string> describe_single_stage(const ObservedTrace& trace, std::size_t files) {
  std::set<std::int32_t> stages;
  std::set<std::optional<std::int32_t>> ranks;
  const bool are_stated = state_stages(trace);
  for (const ObservedOp& observed : trace.ops) {
    if (!is_compute(observed.op.kind)) continue;
    stages.insert(are_stated ? observed.op.stage : observed.chunk.value_or(0));
    ranks.insert(recorder_of(trace, observed).rank);
  }
  if (stages.size() != 1 || (!are_stated && ranks.size() != 1)) return {};
  return fmt::format(
      "all {} files run one stage and no other: they are replicas without a pipeline, or each "
      "counts its own stages; if they are ranks of one pipeline, name their stages in their ops, "
      "as 2F0 on rank 2, or state args.pp_rank",
      files);
}

/// If a file is named after a later rank and has a single process, the process is that rank, and
/// the ranks before it are missing: every file may number its only process 0.
void rank_lone_process(ObservedTrace& trace) {
  Recorder& only = trace.recorders.front();
  const std::optional<NamedNumber> named = find_rank_number(name_in(only.where));
  if (!only.is_process || only.is_thread || !named || named->number == 0) return;
  if (!named->is_rank && !named->is_device) return;
  only.rank = named->number;
  only.is_process = !named->is_rank;
  only.is_device = named->is_device;
}

}  // namespace

ObservedTrace tell_files_apart(ObservedTrace trace) {
  const std::set<std::string> files = files_of(trace);
  if (!trace.source.numbers_files_apart || trace.ops.empty()) return trace;
  if (trace.recorders.size() == 1) rank_lone_process(trace);
  if (files.size() < 2) return trace;
  if (std::all_of(trace.recorders.begin(), trace.recorders.end(), is_process))
    rank_processes_of_files(trace, files);
  if (std::optional<std::string> single = describe_single_stage(trace, files.size()))
    trace.remarks.faults.insert(trace.remarks.faults.begin(), *std::move(single));
  return trace;
}

}  // namespace bubblescope::traces
