// Reports on logs.
#include "tools/commands/timer_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "sim/ir/error.h"
#include "tools/commands/trace_folders.h"
#include "tools/flags/output_format.h"
#include "tools/print.h"
#include "traces/files/file.h"
#include "traces/files/quote.h"

namespace bubblescope::tools {

namespace {

/// A file, with the timers of each of its writers; without any if it is no log.
struct LogFile {
  std::string path;
  std::vector<traces::TimerLog> logs;
};

/// The text of a file, or a view of a stream's.
using Text = std::variant<std::string, std::string_view>;

std::string_view view(const Text& text) {
  return std::visit([](const auto& one) { return std::string_view(one); }, text);
}

/// Reads the text of a file that may be a log; nullopt for a trace, which is too large to be read
/// twice.
std::optional<Text> read_text(const std::string& path, const StreamTexts& streams) {
  if (const std::optional<std::string_view> text = streams.find(path)) {
    if (traces::begins_as_trace(*text)) return {};
    return *text;
  }
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  if (has_trace_ending(path) || path.ends_with(".jsonl") || path.ends_with(".jsonl.gz")) return {};
  const std::string begin = read_begin(path);
  traces::expect_no_utf16(begin, path);
  if (traces::begins_as_trace(begin)) return {};
  return traces::read_file(path);
}

[[noreturn]] void refuse_without_timers(const std::string& name, std::string_view text) {
  if (traces::lacks_timer_header(text))
    throw Error(name +
                " has timers of Megatron-LM without the line before them that says over which "
                "ranks they are: '(min, max) time across ranks (ms):'; give the log with that "
                "line, and with the line of its iteration");
  throw Error(name +
              " is a log without timers, and no trace: Megatron-LM prints timers with "
              "--timing-log-level 2, DeepSpeed with wall_clock_breakdown; other programs need a "
              "profile (docs/traces.md)");
}

/// Reads a log's text; nullopt for anything else. Throws Error for a log without timers.
std::optional<Text> read_log_text(const std::string& path, const StreamTexts& streams) {
  std::optional<Text> text = read_text(path, streams);
  if (!text || traces::is_timer_log(view(*text))) return text;
  if (traces::is_training_log(view(*text)))
    refuse_without_timers(traces::name_input(path), view(*text));
  return {};
}

struct LogText {
  std::string path;
  std::optional<Text> text;  ///< nullopt: it is not a log
};

/// Returns the logs of a folder that holds logs with timers and no trace; nothing for any other
/// folder.
std::vector<LogText> read_folder(const std::string& path) try {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return {};
  const std::vector<std::string> files = list_files(path);
  if (std::any_of(files.begin(), files.end(), has_trace_ending)) return {};
  std::vector<LogText> logs;
  std::vector<std::string> others;
  for (const std::string& file : files) {
    std::optional<Text> text = read_text(file, {});
    if (!text) return {};
    if (traces::is_timer_log(view(*text)))
      logs.push_back({file, std::move(text)});
    else
      others.push_back(file);
  }
  if (!logs.empty() && !others.empty())
    print_message("bubblescope: left out, as no logs of timers: {}\n", fmt::join(others, ", "));
  return logs;
} catch (const Error&) {
  return {};  // a file cannot be read, as the readers of traces will say
}

std::vector<LogFile> read_files(const std::vector<std::string>& paths, const StreamTexts& streams) {
  std::vector<LogFile> files;
  for (const std::string& given : paths) {
    std::vector<LogText> texts = read_folder(given);
    if (texts.empty()) texts.push_back({traces::name_input(given), read_log_text(given, streams)});
    for (const LogText& one : texts) {
      files.push_back({one.path, {}});
      if (one.text) files.back().logs = traces::read_timer_logs(view(*one.text), one.path);
    }
  }
  return files;
}

/// Throws Error where a log is given with a trace, or twice.
void expect_logs_alone(const std::vector<LogFile>& files) {
  const auto is_log = [](const LogFile& file) { return !file.logs.empty(); };
  const auto log = std::find_if(files.begin(), files.end(), is_log);
  const auto other = std::find_if_not(files.begin(), files.end(), is_log);
  if (other != files.end())
    throw Error(fmt::format(
        "{} is a log of timers, which has nothing about the ops of {}; analyze them separately",
        log->path, other->path));
  for (auto file = files.begin(); file != files.end(); ++file)
    if (std::any_of(files.begin(), file,
                    [&](const LogFile& before) { return before.path == file->path; }))
      throw Error(file->path + " is given twice; give every log once");
}

std::string write_logs(const std::vector<LogFile>& files) {
  std::string text;
  for (const LogFile& file : files)
    for (traces::TimerLog log : file.logs) {
      if (file.logs.size() > 1)
        log.file += log.writer.empty()
                        ? " (lines that no launcher marks)"
                        : fmt::format(" (lines that begin with {})", traces::quote(log.writer));
      text += (text.empty() ? "" : "\n") + traces::write_timer_log_text(log);
    }
  return text;
}

}  // namespace

std::optional<traces::TimerLog> read_timer_log(const std::string& path,
                                               const StreamTexts& streams) {
  const std::optional<Text> text = read_log_text(path, streams);
  if (!text) return {};
  return traces::read_timer_log(view(*text), traces::name_input(path));
}

std::optional<std::string> report_timer_logs(const std::vector<std::string>& paths,
                                             OutputFormat format, const StreamTexts& streams) {
  const std::vector<LogFile> files = read_files(paths, streams);
  if (std::all_of(files.begin(), files.end(),
                  [](const LogFile& file) { return file.logs.empty(); }))
    return {};
  expect_logs_alone(files);
  if (format == OutputFormat::kText) return write_logs(files);
  if (files.size() > 1)
    throw Error(fmt::format(
        "--format {} holds one log of timers, but there are {}; give one, or a row for each by "
        "--each",
        name_of(kOutputFormats, format), files.size()));
  const traces::TimerLog& log = traces::expect_one_writer(files.front().logs);
  if (format == OutputFormat::kJson) return traces::write_timer_log_json(log);
  for (const std::string& sentence : traces::describe_left_out(log))
    print_message("bubblescope: {}\n", sentence);
  return traces::write_timer_log_csv(log);
}

}  // namespace bubblescope::tools
