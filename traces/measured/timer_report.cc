// Reads the values of timers.
#include "traces/measured/timer_report.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "traces/files/quote.h"

namespace bubblescope::traces {

namespace {

void leave_out(TimerRun& run, std::size_t line, const std::string& why) {
  if (!run.is_unread) run.unread.push_back({line, why, false});
  run.is_unread = true;
}

std::optional<double> read_time(TimerRun& run, const TimerField& field, std::size_t line) {
  const std::optional<double> time = parse_time(field.value);
  if (!time) leave_out(run, line, describe_no_time(field.value));
  return time;
}

void put(TimerRun& run, const TimerField& field, ReportedTimer values) {
  run.report.add_name(field.name);
  if (std::optional<ReportedTimer>* const timer = run.report.find(field.name))
    *timer = std::move(values);
}

}  // namespace

void add_range(TimerRun& run, const TimerField& field, std::size_t line) {
  const std::string_view text = field.value;
  const std::size_t comma = text.find(',');
  const bool is_pair = text.find(',', comma + 1) == text.npos;
  const std::optional<double> least = parse_time(text.substr(1, comma - 1));
  const std::optional<double> most = parse_time(text.substr(comma + 1, text.size() - comma - 2));
  if (!is_pair || !least || !most)
    return leave_out(run, line,
                     fmt::format("{} is not a pair of times in milliseconds", quote(text)));
  if (*least > *most)
    return leave_out(run, line, fmt::format("{} has a minimum over its maximum", quote(text)));
  run.times.push_back({std::string(field.name), {}, *least, *most});
  put(run, field, {*least, *most});
}

void add_largest(TimerRun& run, const TimerField& field, std::size_t line) {
  const std::optional<double> time = read_time(run, field, line);
  if (!time) return;
  if (!is_whole_time(field.value)) run.report.is_garbled = true;
  run.times.push_back({std::string(field.name), {}, {}, *time});
  put(run, field, {{}, *time});
}

void add_rank(TimerRun& run, const TimerField& field, std::size_t line) {
  const std::optional<double> time = read_time(run, field, line);
  if (!time) return;
  TimerReport& report = run.report;
  // Ranks that begin anew belong to a timer whose name was lost.
  if (run.timer.empty() || field.rank <= run.last_rank) {
    report.is_garbled = true;
    run.timer.clear();
    return;
  }
  run.last_rank = field.rank;
  run.times.push_back({run.timer, field.rank, {}, *time});
  report.ranks.insert(field.rank);
  if (!is_whole_time(field.value)) report.is_garbled = true;
  std::optional<ReportedTimer>* const timer = report.find(run.timer);
  if (timer == nullptr) return;
  if (!*timer) *timer = ReportedTimer{};
  if (!(*timer)->by_rank.emplace(field.rank, *time).second) report.is_garbled = true;
}

void begin_timer(TimerRun& run, std::string_view name) {
  run.report.add_name(name);
  run.timer = std::string(name);
  run.last_rank = -1;
}

void add_cut(TimerRun& run, const TimerField& field, std::size_t line) {
  run.report.is_garbled = true;
  if (run.block == TimerBlock::kLargest && !field.value.empty() && field.value[0] != '(')
    leave_out(run, line, describe_no_time(field.value));
}

}  // namespace bubblescope::traces
