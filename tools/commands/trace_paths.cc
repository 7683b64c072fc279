// Reads folders as profilers write them: one file per rank, and possibly other files.
#include "tools/commands/trace_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "tools/commands/read_in_parallel.h"
#include "tools/flags/field_names.h"
#include "tools/flags/words.h"
#include "traces/files/format.h"
#include "traces/files/no_pipeline.h"
#include "traces/files/trace_format.h"
#include "traces/measured/activity_names.h"
#include "traces/measured/file_ranks.h"
#include "traces/measured/name_rules.h"
#include "traces/measured/rank_words.h"
#include "traces/measured/timer_log.h"
#include "traces/text/wording.h"

namespace bubblescope::tools {

namespace {

namespace fs = std::filesystem;

void expect_different(const std::vector<std::string>& paths) {
  std::set<std::string> files;
  for (const std::string& path : paths) {
    std::error_code unreadable;
    const fs::path file = fs::canonical(path, unreadable);
    if (!files.insert(unreadable ? path : file.string()).second)
      throw Error(path + " is given twice; give every trace once");
  }
}

/// Compares numbers by value: "rank2.json" precedes "rank10.json".
bool natural_order(const std::string& left, const std::string& right) {
  std::size_t at = 0;
  std::size_t other = 0;
  while (at < left.size() && other < right.size()) {
    if (is_digit(left[at]) && is_digit(right[other])) {
      const std::size_t end = std::min(left.find_first_not_of("0123456789", at), left.size());
      const std::size_t other_end =
          std::min(right.find_first_not_of("0123456789", other), right.size());
      const std::string number = left.substr(at, end - at);
      const std::string other_number = right.substr(other, other_end - other);
      if (number.size() != other_number.size()) return number.size() < other_number.size();
      if (number != other_number) return number < other_number;
      at = end;
      other = other_end;
    } else {
      if (left[at] != right[other]) return left[at] < right[other];
      ++at;
      ++other;
    }
  }
  return left.size() - at < right.size() - other;
}

void append_file(traces::ObservedTrace& trace, traces::ObservedTrace further,
                 const std::string& path, bool is_alone) {
  for (traces::MeasuredStep& step : further.steps)
    if (step.label.empty() && !is_alone) step.label = path;
  traces::append(trace, std::move(further));
}

std::string file_name(const std::string& path) { return fs::path(path).filename().string(); }

/// A file of a folder that is not a trace or cannot be read.
struct Unread {
  std::string path;
  std::string reason;
  bool is_sound = false;  ///< a valid file that contains no pipeline
};

/// Whether a file may be left out of the job. A file named like the traces of its folder may not,
/// and neither may a damaged file with the extension of a trace: without it, the report would cover
/// only part of the job.
bool may_be_left_out(const Unread& unread, const std::set<std::string>& names_of_traces) {
  if (names_of_traces.contains(traces::without_digits(file_name(unread.path)))) return false;
  return unread.is_sound || !has_trace_ending(unread.path);
}

/// Why a file could not be read.
Unread describe_failure(const std::string& path, const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const traces::NoPipeline& error) {
    return {path, name_flags(error.what()), true};
  } catch (const Error& error) {
    return {path, name_flags(error.what()), false};
  }
}

/// Returns a text such as "a, b, c and 4 more".
std::string name_some(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxNames = 5;
  if (names.size() <= kMaxNames) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + kMaxNames, ", "),
                     names.size() - kMaxNames);
}

std::string describe_formats() {
  std::vector<std::string> formats;
  for (const traces::TraceFormat& format : Registry<traces::TraceFormat>::instance().all())
    formats.push_back(format.name + " (" + format.summary + ")");
  return fmt::format("{}", fmt::join(formats, "; "));
}

bool is_timer_log(const std::string& path) {
  try {
    return !has_trace_ending(path) && traces::is_timer_log(traces::read_file(path));
  } catch (const Error&) {
    return false;  // it is too large, or cannot be read
  }
}

/// The trace in the folder that Ascend's profiler writes for each process, beside tables.
constexpr const char* kAscendTrace = "trace_view.json";

/// A folder with files that look like traces.
struct TraceFolder {
  std::string path;
  std::string outer;  ///< the folder that it lies in, or itself: an entry of the folder searched
};

using IsWanted = bool (*)(const std::string& path);

/// The entries of a folder, in the order of their names; empty where it cannot be read.
std::vector<std::string> list_entries(const std::string& folder) {
  std::vector<std::string> entries;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed); !failed && at != fs::directory_iterator();
       at.increment(failed))
    entries.push_back(at->path().string());
  std::sort(entries.begin(), entries.end(), natural_order);
  return entries;
}

bool holds(const std::string& folder, IsWanted is_wanted) {
  const std::vector<std::string> entries = list_entries(folder);
  return std::any_of(entries.begin(), entries.end(), is_wanted);
}

/// The folders in a folder that hold files like those, or where there are none, the folders in
/// these.
std::vector<TraceFolder> find_folders_with(const std::string& folder, IsWanted is_wanted) {
  const std::vector<std::string> outers = list_entries(folder);
  std::vector<TraceFolder> found;
  for (const std::string& outer : outers)
    if (holds(outer, is_wanted)) found.push_back({outer, outer});
  if (!found.empty()) return found;
  for (const std::string& outer : outers)
    for (const std::string& inner : list_entries(outer))
      if (holds(inner, is_wanted)) found.push_back({inner, outer});
  return found;
}

bool is_ascend_trace(const std::string& path) { return file_name(path) == kAscendTrace; }

/// The ranks that the names of folders state: "rank_0", "gpu1"; empty where one states none.
std::vector<std::int32_t> find_ranks(const std::vector<std::string>& names) {
  std::vector<std::int32_t> ranks;
  for (const std::string& name : names) {
    const auto number = traces::find_rank_number(name);
    if (!number || !(number->is_rank || number->is_device)) return {};
    ranks.push_back(number->number);
  }
  return ranks;
}

/// Says which folders of traces to give. Those of one job have the same name but for its numbers,
/// and each is of another rank, or of a process.
std::string advise_folders(const std::string& folder, const std::vector<TraceFolder>& found) {
  if (found.size() == 1) return "give that";
  std::set<std::string> outers;
  for (const TraceFolder& one : found) outers.insert(one.outer);
  const bool lie_in_one = outers.size() == 1;
  if (!lie_in_one && outers.size() != found.size()) return "give those of one run";
  std::vector<std::string> names;
  for (const TraceFolder& one : found)
    names.push_back(file_name(lie_in_one ? one.path : one.outer));
  const bool are_ascend = std::all_of(found.begin(), found.end(), [](const TraceFolder& one) {
    return holds(one.path, is_ascend_trace);
  });
  fs::path files = lie_in_one ? fs::path(found.front().outer) / "*" : fs::path(folder) / "*";
  if (!lie_in_one && found.front().path != found.front().outer) files /= "*";
  files /= are_ascend ? kAscendTrace : "*";
  if (are_ascend)
    return fmt::format("each is of one process; give all of one run: {}", files.string());
  const std::vector<std::int32_t> ranks = find_ranks(names);
  if (ranks.empty()) return "give one of them";
  const bool have_one_name = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return traces::without_digits(name) == traces::without_digits(names.front());
  });
  if (have_one_name && std::set(ranks.begin(), ranks.end()).size() == ranks.size())
    return fmt::format("give all: {}", files.string());
  return "give those of one run";
}

[[noreturn]] void refuse_empty_folder(const std::string& folder) {
  std::vector<TraceFolder> found = find_folders_with(folder, is_ascend_trace);
  if (found.empty()) found = find_folders_with(folder, has_trace_ending);
  std::string advice = "give the folder of the files itself";
  std::vector<std::string> paths;
  for (const TraceFolder& one : found) paths.push_back(one.path);
  if (!paths.empty())
    advice = fmt::format("there are files like traces in {}: {}", name_some(paths),
                         advise_folders(folder, found));
  throw Error(
      fmt::format("{} holds no trace of a pipeline: there is no file in it, and folders in "
                  "it are not searched; {}",
                  folder, advice));
}

/// Describes a folder without traces: the first files that look like traces with the reasons why
/// they are none, all others by name only.
[[noreturn]] void refuse_folder(const std::string& folder, const std::vector<Unread>& unread) {
  if (unread.empty()) refuse_empty_folder(folder);
  constexpr std::size_t kMaxReasons = 3;
  std::vector<std::string> names;
  std::vector<std::string> reasons;
  for (const Unread& file : unread) {
    names.push_back(file_name(file.path));
    if (reasons.size() == kMaxReasons) continue;
    if (is_timer_log(file.path))
      reasons.push_back(file.path + " is a log of timers: give it by itself");
    else if (has_trace_ending(file.path))
      reasons.push_back(file.reason);
  }
  std::string text = fmt::format("{} holds no trace of a pipeline; looked at {}: {}", folder,
                                 traces::counted(std::ssize(names), "file"), name_some(names));
  for (const std::string& reason : reasons) text += "; " + reason;
  throw Error(text + ". What is read: " + describe_formats());
}

/// Reads the traces of a folder, and notes which files are clearly not traces.
void append_folder(traces::ObservedTrace& trace, const std::string& folder,
                   const traces::NameRules& rules) {
  std::set<std::string> names_of_traces;
  std::vector<Unread> unread;
  const std::vector<std::string> files = list_files(folder);
  StreamTexts none;
  std::vector<ReadOutcome> outcomes = read_in_parallel(files, rules, none);
  for (std::size_t at = 0; at < files.size(); ++at) {
    if (outcomes[at].failed) {
      unread.push_back(describe_failure(files[at], outcomes[at].failed));
      continue;
    }
    names_of_traces.insert(traces::without_digits(file_name(files[at])));
    append_file(trace, std::move(outcomes[at].trace), files[at], false);
  }
  if (names_of_traces.empty()) refuse_folder(folder, unread);
  std::vector<std::string> names;
  for (const Unread& file : unread) {
    if (!may_be_left_out(file, names_of_traces))
      throw Error(
          fmt::format("{}; it lies among the traces of {}: record or repair it, or move it "
                      "elsewhere if it is no "
                      "rank of this job",
                      file.reason, folder));
    names.push_back(file_name(file.path));
  }
  if (!names.empty())
    trace.remarks.left_out.push_back(fmt::format("left out of {}, as no traces of a pipeline: {}",
                                                 folder, fmt::join(names, ", ")));
}

}  // namespace

std::vector<std::string> list_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed); !failed && at != fs::directory_iterator();
       at.increment(failed)) {
    std::error_code ignored;  // a file that cannot be examined does not belong to a profile
    if (at->is_regular_file(ignored) && !at->path().filename().string().starts_with("."))
      files.push_back(at->path().string());
  }
  if (failed)
    throw Error(fmt::format("the folder {} cannot be read: {}", folder, failed.message()));
  std::sort(files.begin(), files.end(), natural_order);
  return files;
}

bool has_trace_ending(const std::string& path) {
  std::string name = to_lower(file_name(path));
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  return name.ends_with(".json") || name.ends_with(".sqlite") || name.ends_with(".csv");
}

traces::ObservedTrace read_traces(const std::vector<std::string>& paths,
                                  const std::string& rules_file, StreamTexts& streams) {
  traces::NameRules rules;
  if (!rules_file.empty())
    rules = traces::NameRules::parse(traces::read_file(rules_file), rules_file);
  expect_different(paths);
  traces::ObservedTrace trace;
  const auto is_folder = [](const std::string& path) {
    std::error_code ignored;
    return path != "-" && fs::is_directory(path, ignored);
  };
  std::vector<std::string> files;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(files),
               [&](const std::string& path) { return !is_folder(path); });
  std::vector<ReadOutcome> outcomes = read_in_parallel(files, rules, streams);
  std::size_t next = 0;
  for (const std::string& path : paths) {
    if (is_folder(path)) {
      append_folder(trace, path, rules);
      continue;
    }
    ReadOutcome& outcome = outcomes[next++];
    if (outcome.failed) std::rethrow_exception(outcome.failed);
    append_file(trace, std::move(outcome.trace), path, paths.size() == 1);
  }
  return traces::tell_files_apart(std::move(trace));
}

}  // namespace bubblescope::tools
