// Reports on the timers of a log.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "traces/files/csv_string.h"
#include "traces/files/quote.h"
#include "traces/json/json_writer.h"
#include "traces/measured/timer_log.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

using Timers = std::vector<const LoggedTimer*>;

Timers select_timers(const TimerLog& log, bool is_of_all_ranks) {
  Timers timers;
  for (const LoggedTimer& timer : log.timers)
    if (timer.is_of_all_ranks == is_of_all_ranks) timers.push_back(&timer);
  return timers;
}

std::vector<std::int32_t> collect_ranks(const Timers& timers) {
  std::set<std::int32_t> ranks;
  for (const LoggedTimer* timer : timers)
    for (const auto& [rank, _] : timer->by_rank) ranks.insert(rank);
  return {ranks.begin(), ranks.end()};
}

std::string time_text(std::optional<double> ms) { return ms ? fmt::format("{:.2f} ms", *ms) : "-"; }

/// Returns one line: a name and columns to its right.
std::string write_row(std::string_view name, std::size_t width,
                      const std::vector<std::string>& columns) {
  std::string row = fmt::format("{:<{}}", name, width);
  for (const std::string& column : columns) row += fmt::format("  {:>12}", column);
  return row + "\n";
}

std::string write_ranges(const Timers& timers, std::size_t width) {
  if (timers.empty()) return {};
  std::string text = write_row("timer", width, {"least rank", "most rank"});
  for (const LoggedTimer* timer : timers)
    text += write_row(timer->name, width, {time_text(timer->min_ms), time_text(timer->max_ms)});
  return text;
}

/// The timers of ranks that print their own, in a column for each where these are few.
std::string write_printed(const Timers& timers, std::size_t width) {
  if (timers.empty()) return {};
  constexpr std::size_t kMaxColumns = 8;
  const std::vector<std::int32_t> ranks = collect_ranks(timers);
  if (ranks.size() > kMaxColumns) return write_ranges(timers, width);
  std::vector<std::string> titles;
  for (const std::int32_t rank : ranks) titles.push_back(fmt::format("rank {}", rank));
  if (ranks.empty()) titles.emplace_back("time");
  std::string text = write_row("timer", width, titles);
  for (const LoggedTimer* timer : timers) {
    std::vector<std::string> columns;
    for (const std::int32_t rank : ranks) {
      const auto time = timer->by_rank.find(rank);
      columns.push_back(time == timer->by_rank.end() ? "-" : time_text(time->second));
    }
    if (timer->by_rank.empty()) columns.assign(1, time_text(timer->max_ms));
    text += write_row(timer->name, width, columns);
  }
  return text;
}

/// Whether two times differ by more than iterations of one kind do.
bool differs(double left, double right) {
  constexpr double kJitter = 0.05;
  return std::abs(left - right) > kJitter * right;
}

/// "22.0 to 40.0", "at least 22.0": a share in percent.
std::string describe_range(double low, std::optional<double> high) {
  return high ? fmt::format("{:.1f} to {:.1f}", 100 * low, 100 * *high)
              : fmt::format("at least {:.1f}", 100 * low);
}

/// The bounds that the longest and the shortest times of the ranks give, and how far they go.
std::string describe_bounds(const ShareRange& share, bool has_ranks) {
  constexpr const char* kDifferent =
      "The {} of forward-compute and of backward-compute may be of different ranks, so that no "
      "rank need be at {}.\n";
  if (!share.high && share.low <= 0)
    return "\nThe longest forward-compute and the longest backward-compute, which may be of "
           "different ranks, take as long together as an iteration, and the log has no others. So "
           "it does not tell what share of an iteration ranks spend outside forward and backward; "
           "--timing-log-option minmax prints the shortest as well, and all every rank.\n";
  std::string text = fmt::format(
      "\nEvery rank{} spends {} % of an iteration outside forward and backward: waiting, messages, "
      "reducing gradients, the optimizer.\n",
      has_ranks ? " in the log" : "", describe_range(share.low, share.high));
  if (has_ranks) return text;
  if (share.high) return text + fmt::format(kDifferent, "least and the most times", "either end");
  return text + fmt::format(kDifferent, "longest times", "this bound") +
         "How much others spend is not in the log, which has the longest time of each timer alone; "
         "--timing-log-option minmax prints the shortest as well.\n";
}

std::string write_shares(const TimerLog& log) {
  std::string text;
  for (const auto& [rank, of_rank] : log.ranks)
    text += fmt::format("rank {}: computes {:.1f} ms, {:.1f} % of an iteration\n", rank,
                        of_rank.compute_ms, 100 * of_rank.share);
  if (!text.empty()) text = "\n" + text;
  if (log.outside) {
    const ShareRange& share = *log.outside;
    text += describe_bounds(share, !log.ranks.empty());
    if (share.lowest < share.low || share.highest > share.high)
      text += fmt::format("These are medians of {}; over all of them it is {} %.\n",
                          counted(static_cast<std::int64_t>(share.reports), "report"),
                          describe_range(share.lowest, share.highest));
    if (log.iteration_ms && differs(share.iteration_ms, *log.iteration_ms))
      text += fmt::format("The iterations of these timers took {}; the median of all is {}.\n",
                          time_text(share.iteration_ms), time_text(log.iteration_ms));
  }
  if (log.unfit_reports > 0)
    text += fmt::format(
        "\n{} without a share: forward-compute and backward-compute are not of the same ranks "
        "there, as where a log is cut, or longer than the iteration.\n",
        counted(static_cast<std::int64_t>(log.unfit_reports), "report"));
  return text;
}

/// Names the ranks that printed the timers of single lines.
std::string describe_printing_ranks(const TimerLog& log, const Timers& printed) {
  std::vector<std::string> names;
  for (const std::int32_t rank : collect_ranks(printed)) names.push_back(fmt::format("{}", rank));
  std::string who;
  if (!names.empty())
    who = fmt::format("here {} {}", names.size() == 1 ? "rank" : "ranks", fmt::join(names, ", "));
  else if (!log.writer.empty())
    who = "here that whose lines begin with " + quote(log.writer);
  else
    who = "which the log does not name";
  const char* const usual = log.is_deepspeed
                                ? "DeepSpeed prints mostly rank 0"
                                : "Megatron-LM printed rank 0 and, later, the last rank";
  return fmt::format(
      "{} are those of the {} that printed them, {} ({}); other stages may differ, so there is no "
      "share over all ranks.\n",
      log.is_megatron && log.is_deepspeed ? "DeepSpeed's times" : "The times",
      names.size() > 1 ? "ranks" : "rank", who, usual);
}

/// Sums over steps must not be compared with one iteration.
std::string describe_sums(const TimerLog& log, const Timers& printed) {
  if (!log.sums_steps) return {};
  std::string text =
      "They are sums over the steps between two prints (steps_per_print), not times of one "
      "iteration";
  const auto longest = std::max_element(printed.begin(), printed.end(),
                                        [](const LoggedTimer* left, const LoggedTimer* right) {
                                          return left->max_ms < right->max_ms;
                                        });
  if (log.iteration_ms && longest != printed.end() && (*longest)->max_ms > *log.iteration_ms)
    text += fmt::format(": {} takes longer than one", (*longest)->name);
  return text + ".\n";
}

/// Whether Megatron-LM prints a timer at level 2 alone: those of single ops and messages, and of
/// what loads data.
bool is_of_level_2(const LoggedTimer* timer) {
  const std::string_view name = timer->name;
  if (name == "forward-backward") return false;
  return name.starts_with("forward-") || name.starts_with("backward-") || name == "batch-generator";
}

std::string describe_missing(const TimerLog& log) {
  const Timers of_all = select_timers(log, true);
  const Timers printed = select_timers(log, false);
  std::string text;
  if (!printed.empty()) text = describe_printing_ranks(log, printed) + describe_sums(log, printed);
  if (!of_all.empty() && collect_ranks(of_all).empty())
    text +=
        "Which rank is the fastest or the slowest is not in the log; --timing-log-option all "
        "prints every rank.\n";
  text +=
      "When each op ran, and in which order, is not in the log. So there is no timeline, no "
      "schedule, no bubble by cause and no critical path; a profile has them (docs/traces.md).\n";
  if (std::any_of(of_all.begin(), of_all.end(), is_of_level_2))
    text +=
        "Timers of level 2 synchronize the device at every op, so that the run was slower than "
        "without them.\n";
  else if (!of_all.empty())
    text +=
        "Timers of single ops, which tell the share of an iteration that ranks spend outside "
        "forward and backward, are not in the log; --timing-log-level 2 prints them.\n";
  return text;
}

std::string name_programs(const TimerLog& log) {
  if (log.is_megatron && log.is_deepspeed) return "Megatron-LM and DeepSpeed print";
  return log.is_deepspeed ? "DeepSpeed prints" : "Megatron-LM prints";
}

const char* name_source(const TimerLog& log) {
  if (log.is_megatron && log.is_deepspeed) return "megatron-deepspeed";
  return log.is_deepspeed ? "deepspeed" : "megatron";
}

std::string describe_runs(const TimerLog& log) {
  return fmt::format(
      "the log has {} runs one after another: in line {} iterations begin again, at {}; this is "
      "run {}, the last one{}; give the lines of another one as a log of its own",
      log.runs, log.restart_line, log.restart_iteration, log.run,
      log.run == log.runs ? "" : " with timers that can be read");
}

/// Returns a text such as "2 further lines have numbers that cannot be read; what they belong to is
/// left out".
std::string describe_further_unread(std::size_t lines) {
  return fmt::format("{} {} that cannot be read; what {} to is left out",
                     counted(static_cast<std::int64_t>(lines), "further line"),
                     lines == 1 ? "has a number" : "have numbers",
                     lines == 1 ? "it belongs" : "they belong");
}

}  // namespace

std::vector<std::string> describe_left_out(const TimerLog& log) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> sentences;
  if (log.runs > 1) sentences.push_back(describe_runs(log));
  for (std::size_t at = 0; at < std::min(kShown, log.unread.size()); ++at) {
    const UnreadNumber& unread = log.unread[at];
    sentences.push_back(fmt::format("left out: the {} in line {}: {}",
                                    unread.is_iteration ? "time of the iteration" : "report",
                                    unread.line, unread.what));
  }
  if (log.unread.size() > kShown)
    sentences.push_back(describe_further_unread(log.unread.size() - kShown));
  return sentences;
}

std::string write_timer_log_text(const TimerLog& log) {
  std::string text;
  for (const std::string& sentence : describe_left_out(log)) text += sentence + "\n";
  text +=
      fmt::format("timers of {}: no trace, only the times that {}; medians of {}\n\n", log.file,
                  name_programs(log), counted(static_cast<std::int64_t>(log.reports), "report"));
  std::size_t width = 9;
  for (const LoggedTimer& timer : log.timers) width = std::max(width, timer.name.size());
  const std::string of_all = write_ranges(select_timers(log, true), width);
  const std::string printed = write_printed(select_timers(log, false), width);
  text += of_all + (of_all.empty() || printed.empty() ? "" : "\n") + printed;
  if (log.iteration_ms) text += write_row("iteration", width, {time_text(log.iteration_ms)});
  return text + write_shares(log) + "\n" + describe_missing(log);
}

std::string write_timer_log_json(const TimerLog& log) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("format", "bubblescope-timers/1");
  json.member("source", name_source(log));
  json.member("reports", log.reports).member_or_null("iteration_ms", log.iteration_ms);
  if (log.outside)
    json.key("outside_compute")
        .begin_object()
        .member("low", log.outside->low)
        .member_or_null("high", log.outside->high)
        .member("lowest", log.outside->lowest)
        .member_or_null("highest", log.outside->highest)
        .member("iteration_ms", log.outside->iteration_ms)
        .member("reports", log.outside->reports)
        .end_object();
  else
    json.key("outside_compute").null();
  json.member("unfit_reports", log.unfit_reports).member("sums_steps", log.sums_steps);
  json.member("writer", log.writer).array("left_out", describe_left_out(log));
  json.key("timers").begin_array();
  for (const LoggedTimer& timer : log.timers) {
    json.line(1).begin_object().member("name", timer.name).member_or_null("min_ms", timer.min_ms);
    json.member("max_ms", timer.max_ms).member("is_of_all_ranks", timer.is_of_all_ranks);
    json.key("ranks").begin_array();
    for (const auto& [rank, time] : timer.by_rank)
      json.begin_object().member("rank", rank).member("ms", time).end_object();
    json.end_array().end_object();
  }
  json.end_array().key("bubble").null().end_object();
  return text + "\n";
}

std::string write_timer_log_csv(const TimerLog& log) {
  std::string text = "timer,min_ms,max_ms\n";
  for (const LoggedTimer& timer : log.timers)
    text += fmt::format("{},{},{}\n", csv_string(timer.name),
                        timer.min_ms ? fmt::format("{}", *timer.min_ms) : "", timer.max_ms);
  return text;
}

}  // namespace bubblescope::traces
