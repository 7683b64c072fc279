// Folders are searched by the first bytes of their files.
#include "tools/commands/trace_folders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "tools/flags/words.h"
#include "traces/files/gzip.h"
#include "traces/files/looks_like_trace.h"
#include "traces/files/trace_format.h"
#include "traces/measured/activity_names.h"
#include "traces/measured/rank_words.h"

namespace bubblescope::tools {

namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 3;

/// Larger files are not read to see what they hold.
constexpr std::uintmax_t kMaxJudgedBytes = 64 << 20;

/// The trace in the folder that Ascend's profiler writes for each process, beside tables.
constexpr const char* kAscendTrace = "trace_view.json";

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

std::string name_in(const std::string& path) { return fs::path(path).filename().string(); }

std::string parent_of(const std::string& path) { return fs::path(path).parent_path().string(); }

/// The folders in a folder, in the order of their names; empty where it cannot be read.
std::vector<std::string> list_folders(const std::string& folder) {
  std::vector<std::string> folders;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed); !failed && at != fs::directory_iterator();
       at.increment(failed)) {
    std::error_code ignored;
    if (at->is_directory(ignored) && !name_in(at->path().string()).starts_with("."))
      folders.push_back(at->path().string());
  }
  std::sort(folders.begin(), folders.end(), natural_order);
  return folders;
}

/// Whether a file is a trace by its name and its first bytes. Checkpoints and logs have json, too.
bool is_named_and_looks_like_trace(const std::string& path) {
  if (!has_trace_ending(path)) return false;
  try {
    return traces::looks_like_trace(read_begin(path));
  } catch (const Error&) {
    return true;  // it is damaged, as its reader will say
  }
}

bool is_ascend(const std::string& folder) {
  std::error_code ignored;
  return fs::is_regular_file(fs::path(folder) / kAscendTrace, ignored);
}

bool holds_traces(const std::string& folder) {
  if (is_ascend(folder)) return true;
  try {
    const std::vector<std::string> files = list_files(folder);
    return std::any_of(files.begin(), files.end(), is_named_and_looks_like_trace);
  } catch (const Error&) {
    return false;  // it cannot be read
  }
}

/// Whether the first trace of a folder has ops of a pipeline. A large one is not read for that.
bool holds_pipeline(const std::string& folder) {
  try {
    const std::vector<std::string> files = list_files(folder);
    const auto first = std::find_if(files.begin(), files.end(), is_named_and_looks_like_trace);
    if (first == files.end()) return is_ascend(folder);
    if (fs::file_size(*first) > kMaxJudgedBytes) return true;
    traces::read_trace(*first, nullptr);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Appends the folders with traces; what lies below one of them belongs to it.
void append_folders(const std::string& folder, int depth, std::vector<std::string>& found) {
  for (const std::string& inner : list_folders(folder))
    if (holds_traces(inner))
      found.push_back(inner);
    else if (depth > 1)
      append_folders(inner, depth - 1, found);
}

/// Whether folders are those of one job's iterations, such as iteration_10 and iteration_20.
bool are_iterations(const std::vector<std::string>& names) {
  constexpr std::array<std::string_view, 4> kWords{"iter", "step", "cycle", "epoch"};
  const std::string word = to_lower(names.front());
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view one) { return word.find(one) != word.npos; });
}

/// Whether the names are those of ranks, each of another one.
bool are_ranks(const std::vector<std::string>& names) {
  std::set<std::int32_t> ranks;
  for (const std::string& name : names) {
    const auto number = traces::find_rank_number(name);
    if (!number || !(number->is_rank || number->is_device)) return false;
    ranks.insert(number->number);
  }
  return ranks.size() == names.size();
}

/// The folder of each by which they are told apart: itself where all lie in one, or the one in it.
std::vector<std::string> find_outers(const std::string& folder,
                                     const std::vector<std::string>& found) {
  const std::string parent = parent_of(found.front());
  const bool lie_in_one = std::all_of(
      found.begin(), found.end(), [&](const std::string& one) { return parent_of(one) == parent; });
  if (lie_in_one) return found;
  std::vector<std::string> outers;
  for (std::string one : found) {
    while (parent_of(one).size() > folder.size()) one = parent_of(one);
    outers.push_back(one);
  }
  return std::set(outers.begin(), outers.end()).size() == outers.size()
             ? outers
             : std::vector<std::string>{};
}

/// Whether all names are one but for their numbers.
bool have_one_name(const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return traces::without_digits(name) == traces::without_digits(names.front());
  });
}

/// Whether folders hold one job; those of Ascend's profiler may be of several runs.
bool are_of_one_job(const std::string& folder, const std::vector<std::string>& found) {
  if (found.size() == 1) return true;
  if (std::any_of(found.begin(), found.end(), is_ascend)) return false;
  std::vector<std::string> names;
  for (const std::string& outer : find_outers(folder, found)) names.push_back(name_in(outer));
  return !names.empty() && have_one_name(names) && (are_iterations(names) || are_ranks(names));
}

/// Says which folders to give.
std::string advise(const std::string& folder, const std::vector<std::string>& found) {
  std::string advice = found.size() == 1 ? "give that" : "give those of one run";
  if (std::all_of(found.begin(), found.end(), is_ascend)) {
    fs::path files = folder;
    for (std::string at = found.front(); at.size() > folder.size(); at = parent_of(at))
      files /= "*";
    advice = fmt::format("each is of one process; give all of one run: {}",
                         (files / kAscendTrace).string());
  }
  return fmt::format("there are traces in {}: {}", name_some(found), advice);
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
  std::string name = to_lower(name_in(path));
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  return name.ends_with(".json") || name.ends_with(".sqlite") || name.ends_with(".csv");
}

std::string read_begin(const std::string& path) {
  constexpr std::size_t kBegin = 4096;
  std::string begin(kBegin, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(file.gcount()));
  return traces::is_gzip(begin) ? traces::gunzip_begin(begin) : begin;
}

std::string name_some(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxNames = 8;
  if (names.size() <= kMaxNames) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + kMaxNames, ", "),
                     names.size() - kMaxNames);
}

InnerTraces find_inner_traces(const std::string& folder) {
  std::string root = folder;
  while (root.size() > 1 && root.ends_with('/')) root.pop_back();
  std::vector<std::string> found;
  append_folders(root, kMaxDepth, found);
  if (found.empty()) return {};
  const bool is_job = are_of_one_job(root, found);
  if (!is_job) std::stable_partition(found.begin(), found.end(), holds_pipeline);
  const std::string advice = advise(root, found);
  if (!is_job) found.clear();
  return {std::move(found), advice};
}

}  // namespace bubblescope::tools
