// Reports on the timers of a log.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "traces/files/csv_string.h"
#include "traces/json/json_writer.h"
#include "traces/measured/timer_log.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

std::string describe_missing(const TimerLog& log) {
  const std::string common =
      "When each op ran, and in which order, is not in the log. So there is no timeline, no "
      "schedule, no bubble by cause and no critical path; a profile has them (docs/traces.md).\n";
  if (log.is_deepspeed)
    return "The times are those of the rank that printed them, mostly rank 0; other stages may "
           "differ.\n" +
           common;
  const bool has_ranks =
      std::any_of(log.timers.begin(), log.timers.end(),
                  [](const LoggedTimer& timer) { return !timer.by_rank.empty(); });
  return (has_ranks ? ""
                    : "Which rank is the fastest or the slowest is not in the log; "
                      "--timing-log-option all prints every rank.\n") +
         common +
         "Timers of level 2 synchronize the device at every op, so that the run was slower than "
         "without them.\n";
}

std::string write_ranks(const TimerLog& log) {
  const LoggedTimer* const forward = log.find("forward-compute");
  const LoggedTimer* const backward = log.find("backward-compute");
  if (!forward || !backward || !log.iteration_ms) return {};
  std::string text;
  for (const auto& [rank, time] : forward->by_rank) {
    const auto other = backward->by_rank.find(rank);
    if (other == backward->by_rank.end()) continue;
    text += fmt::format("rank {}: computes {:.1f} ms, {:.1f} % of an iteration\n", rank,
                        time + other->second, 100 * (time + other->second) / *log.iteration_ms);
  }
  return text.empty() ? text : "\n" + text;
}

std::string least_text(const LoggedTimer& timer) {
  return timer.min_ms ? fmt::format("{:.2f} ms", *timer.min_ms) : "-";
}

}  // namespace

std::string write_timer_log_text(const TimerLog& log) {
  std::string text =
      fmt::format("timers of {}: no trace, only the times that {} prints; medians of {}\n\n",
                  log.file, log.is_deepspeed ? "DeepSpeed" : "Megatron-LM",
                  counted(static_cast<std::int64_t>(log.reports), "report"));
  std::size_t width = 9;
  for (const LoggedTimer& timer : log.timers) width = std::max(width, timer.name.size());
  text += log.is_deepspeed
              ? fmt::format("{:<{}}  {:>12}\n", "timer", width, "time")
              : fmt::format("{:<{}}  {:>12}  {:>12}\n", "timer", width, "least rank", "most rank");
  for (const LoggedTimer& timer : log.timers)
    text += log.is_deepspeed ? fmt::format("{:<{}}  {:>9.2f} ms\n", timer.name, width, timer.max_ms)
                             : fmt::format("{:<{}}  {:>12}  {:>9.2f} ms\n", timer.name, width,
                                           least_text(timer), timer.max_ms);
  if (log.iteration_ms)
    text += fmt::format("{:<{}}  {:>9.2f} ms\n", "iteration", width, *log.iteration_ms);
  text += write_ranks(log);
  if (const std::optional<ShareRange> share = find_share_outside(log))
    text += fmt::format(
        "\nEvery rank spends {:.1f} to {:.1f} % of an iteration outside forward and backward: "
        "waiting, messages, reducing gradients, the optimizer.\n",
        100 * share->low, 100 * share->high);
  return text + "\n" + describe_missing(log);
}

std::string write_timer_log_json(const TimerLog& log) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("format", "bubblescope-timers/1");
  json.member("source", log.is_deepspeed ? "deepspeed" : "megatron");
  json.member("reports", log.reports).member_or_null("iteration_ms", log.iteration_ms);
  if (const std::optional<ShareRange> share = find_share_outside(log))
    json.key("outside_compute")
        .begin_object()
        .member("low", share->low)
        .member("high", share->high)
        .end_object();
  else
    json.key("outside_compute").null();
  json.key("timers").begin_array();
  for (const LoggedTimer& timer : log.timers) {
    json.line(1).begin_object().member("name", timer.name).member_or_null("min_ms", timer.min_ms);
    json.member("max_ms", timer.max_ms).key("ranks").begin_array();
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
