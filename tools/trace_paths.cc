// Reads folders as profilers write them: one file per rank, and perhaps other files.
#include "tools/trace_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "sim/ir/error.h"

namespace bubblescope {

namespace {

namespace fs = std::filesystem;

void expect_different(const std::vector<std::string>& paths) {
  std::error_code ignored;
  for (std::size_t at = 0; at < paths.size(); ++at)
    for (std::size_t before = 0; before < at; ++before)
      if (paths[at] == paths[before] || fs::equivalent(paths[at], paths[before], ignored))
        throw Error(paths[at] + " is given twice; give every trace once");
}

/// Compares numbers by value: "rank2.json" precedes "rank10.json".
bool natural_order(const std::string& left, const std::string& right) {
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
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

std::vector<std::string> files_in(const std::string& folder) {
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

void append_file(ObservedTrace& trace, ObservedTrace further, const std::string& path,
                 bool is_alone) {
  for (MeasuredStep& step : further.steps)
    if (step.label.empty() && !is_alone) step.label = path;
  append(trace, std::move(further));
}

/// Files that are not traces are listed and left out; a file that looks like a profile must be one.
void append_folder(ObservedTrace& trace, const std::string& folder) {
  std::size_t traces = 0;
  std::string others;
  std::string first_reason;
  for (const std::string& path : files_in(folder)) {
    ObservedTrace further;
    try {
      further = read_trace(path);
    } catch (const Error& error) {
      const std::string name = fs::path(path).filename().string();
      others += (others.empty() ? "" : ", ") + name;
      if (first_reason.empty()) first_reason = error.what();
      continue;
    }
    ++traces;
    append_file(trace, std::move(further), path, false);
  }
  if (traces == 0)
    throw Error(folder + " has no trace of a pipeline" +
                (first_reason.empty() ? "" : "; its first file: " + first_reason));
  if (!others.empty())
    trace.notes.push_back(fmt::format("left out of {}: {} ({})", folder, others, first_reason));
}

}  // namespace

ObservedTrace read_traces(const std::vector<std::string>& paths) {
  expect_different(paths);
  ObservedTrace trace;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (path != "-" && fs::is_directory(path, ignored))
      append_folder(trace, path);
    else
      append_file(trace, read_trace(path), path, paths.size() == 1);
  }
  return trace;
}

}  // namespace bubblescope
