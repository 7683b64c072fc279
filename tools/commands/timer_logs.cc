// Reports on logs.
#include "tools/commands/timer_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "sim/ir/error.h"
#include "traces/files/file.h"

namespace bubblescope::tools {

namespace {

/// Throws Error where a log is given with a trace, or twice.
void expect_logs_alone(const std::vector<std::string>& paths,
                       const std::vector<std::optional<traces::TimerLog>>& logs) {
  const auto log = std::find_if(logs.begin(), logs.end(), [](const auto& one) { return one; });
  const auto other = std::find(logs.begin(), logs.end(), std::nullopt);
  if (other != logs.end())
    throw Error(fmt::format(
        "{} is a log of timers, which has nothing about the ops of {}; analyze them separately",
        (*log)->file, paths[static_cast<std::size_t>(other - logs.begin())]));
  for (auto path = paths.begin(); path != paths.end(); ++path)
    if (std::find(paths.begin(), path, *path) != path)
      throw Error(*path + " is given twice; give every log once");
}

}  // namespace

std::optional<traces::TimerLog> read_timer_log(const std::string& path) {
  std::error_code ignored;
  // A stream can be read only once, and traces are too large to be read twice.
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  const std::filesystem::path name(path);
  for (const char* ending : {".json", ".gz", ".sqlite", ".csv", ".jsonl"})
    if (name.extension() == ending) return {};
  std::ifstream file(name, std::ios::binary);
  const int first = file.get();
  if (first == '{' || first == 'S') return {};  // json, or "SQLite format 3"
  const std::string text = traces::read_file(path);
  if (!traces::is_timer_log(text)) return {};
  return traces::read_timer_log(text, path);
}

std::optional<std::string> report_timer_logs(const std::vector<std::string>& paths,
                                             const std::string& format) {
  std::vector<std::optional<traces::TimerLog>> logs;
  bool any = false;
  for (const std::string& path : paths) {
    logs.push_back(read_timer_log(path));
    any = any || logs.back();
  }
  if (!any) return {};
  expect_logs_alone(paths, logs);
  if (logs.size() > 1 && format != "text")
    throw Error(fmt::format(
        "--format {} holds one log of timers, but there are {}; give one, or a row for each by "
        "--each",
        format, logs.size()));
  if (format == "json") return traces::write_timer_log_json(*logs.front());
  if (format == "csv") return traces::write_timer_log_csv(*logs.front());
  std::string text;
  for (const std::optional<traces::TimerLog>& log : logs)
    text += (text.empty() ? "" : "\n") + traces::write_timer_log_text(*log);
  return text;
}

}  // namespace bubblescope::tools
