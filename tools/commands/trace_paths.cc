// Reads folders as profilers write them: one file per rank, and possibly other files.
#include "tools/commands/trace_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "tools/commands/read_in_parallel.h"
#include "tools/commands/trace_folders.h"
#include "tools/flags/field_names.h"
#include "traces/files/format.h"
#include "traces/files/no_pipeline.h"
#include "traces/files/trace_format.h"
#include "traces/measured/activity_names.h"
#include "traces/measured/file_ranks.h"
#include "traces/measured/name_rules.h"
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
  bool is_empty = false;  ///< a recording in which nothing ran
};

/// Whether a file may be left out of the job. An empty recording may; a file named like the traces
/// of its folder may not, and neither may a damaged file with the extension of a trace: without it,
/// the report would cover only part of the job.
bool may_be_left_out(const Unread& unread, const std::set<std::string>& names_of_traces) {
  if (unread.is_empty) return true;
  if (names_of_traces.contains(traces::without_digits(file_name(unread.path)))) return false;
  return unread.is_sound || !has_trace_ending(unread.path);
}

/// Why a file could not be read.
Unread describe_failure(const std::string& path, const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const traces::EmptyRecording& error) {
    return {path, name_flags(error.what()), true, true};
  } catch (const traces::NoPipeline& error) {
    return {path, name_flags(error.what()), true};
  } catch (const Error& error) {
    return {path, name_flags(error.what()), false};
  }
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

/// Whether a position is within a name in quotes. An apostrophe within a word begins none.
bool is_quoted(std::string_view text, std::size_t position) {
  bool quoted = false;
  for (std::size_t at = 0; at < position; ++at) {
    if (text[at] != '\'') continue;
    const char before = at == 0 ? ' ' : text[at - 1];
    const char after = at + 1 < text.size() ? text[at + 1] : ' ';
    quoted = quoted ? std::isalnum(static_cast<unsigned char>(after)) != 0
                    : before == ' ' || before == '(';
  }
  return quoted;
}

/// The clauses of a reason, in a folder's own words: "rank0.json: there is no op", "give it one".
std::vector<std::string> list_clauses(const Unread& file) {
  constexpr std::string_view kBetween = "; ";
  const std::string name = file_name(file.path);
  if (is_timer_log(file.path)) return {name + " is a log of timers: give it by itself"};
  std::string reason = file.reason;
  if (const std::size_t at = reason.find(file.path); at != reason.npos)
    reason.replace(at, file.path.size(), name);
  std::vector<std::string> clauses;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = reason.find(kBetween, end)) != reason.npos;
       end += kBetween.size()) {
    if (is_quoted(reason, end)) continue;
    clauses.push_back(reason.substr(begin, end - begin));
    begin = end + kBetween.size();
  }
  clauses.push_back(reason.substr(begin));
  return clauses;
}

/// The reasons of files, a line for each, and what to do, each said once.
struct Reasons {
  std::vector<std::string> lines = {};
  std::vector<std::string> advices = {};
};

/// The first clause of a reason is about the file itself, and so are its names and, where the file
/// is damaged, what no other file says.
Reasons share_advice(const std::vector<const Unread*>& files) {
  std::vector<std::vector<std::string>> clauses;
  std::map<std::string, std::size_t> count;
  for (const Unread* const file : files) {
    const std::vector<std::string>& own = clauses.emplace_back(list_clauses(*file));
    for (const std::string& clause : std::set(own.begin(), own.end())) ++count[clause];
  }
  Reasons reasons;
  std::set<std::string> said;
  for (std::size_t at = 0; at < files.size(); ++at) {
    std::string line = clauses[at].front();
    std::string advice;
    for (const std::string& clause : std::span(clauses[at]).subspan(1))
      if (clause.starts_with("its names: ") || (!files[at]->is_sound && count[clause] == 1))
        line += "; " + clause;
      else if (said.insert(clause).second)
        advice += (advice.empty() ? "" : "; ") + clause;
    reasons.lines.push_back(std::move(line));
    if (!advice.empty()) reasons.advices.push_back(std::move(advice));
  }
  return reasons;
}

/// Describes a folder without traces: a line for each of the first files that look like traces,
/// with the reason why it is none, each advice once, all other files by name only, and the folders
/// below it that hold traces.
[[noreturn]] void refuse_folder(const std::string& folder, const std::vector<Unread>& unread,
                                const std::string& advice) {
  constexpr std::size_t kMaxReasons = 8;
  std::vector<std::string> others;
  std::vector<const Unread*> explained;
  for (const Unread& file : unread) {
    const bool is_explained = is_timer_log(file.path) ||
                              (has_trace_ending(file.path) && (advice.empty() || !file.is_sound));
    if (is_explained && explained.size() < kMaxReasons)
      explained.push_back(&file);
    else
      others.push_back(file_name(file.path));
  }
  const Reasons reasons = share_advice(explained);
  std::string text = fmt::format("{} holds no trace of a pipeline", folder);
  if (!advice.empty()) text += "; " + advice;
  if (unread.empty()) {
    if (advice.empty()) text += ": there is no file in it, nor a trace in folders below it";
    throw Error(text);
  }
  text += "; looked at " + counted(std::ssize(unread), "file");
  if (!others.empty())
    text += (explained.empty() ? ": " : ", besides those below: ") + name_some(others);
  for (const std::string& line : reasons.lines) text += "\n  " + line;
  for (const std::string& each : reasons.advices) text += "\n" + each;
  if (advice.empty()) text += "\nwhat is read: " + describe_formats();
  throw Error(text);
}

/// Reads the traces of a folder, and notes which files are clearly not traces. Returns whether it
/// has any; if not, `unread` has its files.
bool append_files(traces::ObservedTrace& trace, const std::string& folder,
                  const traces::NameRules& rules, std::vector<Unread>& unread) {
  std::set<std::string> names_of_traces;
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
  if (names_of_traces.empty()) return false;
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
  return true;
}

/// Reads the traces of a folder or, if it has none, those below it if they are of one job.
void append_folder(traces::ObservedTrace& trace, const std::string& folder,
                   const traces::NameRules& rules) {
  std::vector<Unread> unread;
  if (append_files(trace, folder, rules, unread)) return;
  const InnerTraces inner = find_inner_traces(folder);
  const bool is_damaged = std::any_of(
      unread.begin(), unread.end(), [](const Unread& file) { return !may_be_left_out(file, {}); });
  if (inner.folders.empty() || is_damaged) refuse_folder(folder, unread, inner.advice);
  for (const std::string& one : inner.folders) {
    std::vector<Unread> beside;
    if (!append_files(trace, one, rules, beside)) refuse_folder(one, beside, {});
  }
  trace.remarks.notes.push_back(fmt::format("{} itself holds no trace; read were those in {}",
                                            folder, name_some(inner.folders)));
}

}  // namespace

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
  std::vector<Unread> empty;
  for (const std::string& path : paths) {
    if (is_folder(path)) {
      append_folder(trace, path, rules);
      continue;
    }
    ReadOutcome& outcome = outcomes[next++];
    if (outcome.failed) {
      empty.push_back(describe_failure(path, outcome.failed));
      if (!empty.back().is_empty || empty.size() == paths.size())
        std::rethrow_exception(outcome.failed);
      continue;
    }
    append_file(trace, std::move(outcome.trace), path, paths.size() == 1);
  }
  for (const Unread& file : empty) trace.remarks.left_out.push_back("left out: " + file.reason);
  return traces::tell_files_apart(std::move(trace));
}

}  // namespace bubblescope::tools
