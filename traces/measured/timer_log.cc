// Reads the timers that training logs print.
#include "traces/measured/timer_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "sim/ir/error.h"
#include "traces/files/quote.h"
#include "traces/measured/log_prefix.h"
#include "traces/measured/printed_timers.h"
#include "traces/measured/timer_fields.h"
#include "traces/measured/timer_report.h"
#include "traces/measured/timer_run.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

constexpr std::array<std::pair<std::string_view, TimerBlock>, 3> kHeaders{{
    {"(min, max) time across ranks (ms):", TimerBlock::kRange},
    {"max time across ranks (ms):", TimerBlock::kLargest},
    {"times across ranks (ms):", TimerBlock::kEveryRank},
}};
constexpr std::string_view kPrinted = "time (ms) |";  // timers of one rank in one line

/// The time of an iteration.
struct ElapsedMark {
  std::string_view text;
  std::string_view line_begin;  ///< how the message around it begins
  double ms = 1;                ///< one unit of its number
  std::string_view unit = "milliseconds";
};
constexpr ElapsedMark kPipeline{"iter time (s):", "steps:", 1000, "seconds"};  // DeepSpeed's
constexpr std::array kElapsed{
    ElapsedMark{"elapsed time per iteration (ms):", "iteration"},
    ElapsedMark{"elapsed time per iteration (s):", "iteration", 1000},
    ElapsedMark{"elapsed_time_per_iteration_ms=", "iteration"},
    kPipeline,
};
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : file_(file), text_(text) {
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
    if (text_.find('\x1b') == text_.npos) return;
    plain_ = remove_colours(text_);
    text_ = plain_;
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  std::vector<TimerLog> read() && {
    const bool has_newlines = text_.find('\n') != text_.npos;
    while (!text_.empty()) {
      const std::size_t end = std::min(text_.find_first_of("\r\n"), text_.size());
      if (const std::string_view line = strip(text_.substr(0, end)); !line.empty()) take(line);
      // Progress bars end in a carriage return and continue on the same line.
      if (end < text_.size() && (text_[end] == '\n' || !has_newlines)) ++line_;
      text_.remove_prefix(std::min(text_.size(), end + 1));
    }
    std::vector<TimerLog> logs;
    for (auto& [name, runs] : writers_) {
      close_report(runs.back());
      TimerLog log = summarize_runs(runs, name, file_);
      if (!log.timers.empty() || !log.unread.empty()) logs.push_back(std::move(log));
    }
    return logs;
  }

 private:
  void take(std::string_view line) {
    take_iteration(line);
    if (const std::size_t at = line.find(kPrinted); at != line.npos)
      return take_printed(line.substr(0, at), line.substr(at + kPrinted.size()));
    for (const auto& [header, block] : kHeaders) {
      const std::size_t at = line.find(header);
      if (at == line.npos) continue;
      open_ = &last_run_of(line.substr(0, at));
      close_report(*open_);
      open_->block = block;
      open_->report.iteration_ms = std::exchange(open_->iteration_ms, std::nullopt);
      open_->is_megatron = true;
      line.remove_prefix(at + header.size());
      if (!line.empty()) take_timers(line, open_);
      return;
    }
    // A foreign line: another process may print in the midst of a report.
    if (open_ != nullptr) take_timers(line, nullptr);
  }

  /// The last run of the writer whose name stands before a message.
  TimerRun& last_run_of(std::string_view head) {
    std::deque<TimerRun>& runs = writers_[read_prefix(head).writer];
    if (runs.empty()) runs.emplace_back();
    return runs.back();
  }

  void take_iteration(std::string_view line) {
    if (const std::optional<std::size_t> begin = find_iteration(line))
      begin_iteration(line.substr(0, *begin), {});
    for (const ElapsedMark& mark : kElapsed) {
      const std::size_t at = line.find(mark.text);
      if (at == line.npos) continue;
      const std::size_t begin = std::min(line.find(mark.line_begin), at);
      const std::string_view counted = line.substr(begin, at - begin);
      TimerRun& run = begin_iteration(line.substr(0, begin), find_count(counted, mark.line_begin));
      const std::string_view value = strip(line.substr(at + mark.text.size()));
      if (value.find(' ') == value.npos) continue;  // the line is cut
      run.is_pipeline = run.is_pipeline || mark.text == kPipeline.text;
      const std::optional<double> time = parse_time(first_word(value));
      if (!time) {
        run.unread.push_back({line_, describe_no_time(first_word(value), mark.unit), true});
        continue;
      }
      run.iteration_ms = mark.ms * *time;
      run.elapsed.push_back(*run.iteration_ms);
    }
  }

  /// `number` is that of the iteration, where the line has its time: others may count anew for each
  /// epoch or evaluation. A smaller one than before is of another run, as after a failure.
  TimerRun& begin_iteration(std::string_view head, std::optional<std::int64_t> number) {
    TimerRun* run = &last_run_of(head);
    close_report(*run);
    run->iteration_ms.reset();
    if (!number) return *run;
    if (run->last_iteration && *number < *run->last_iteration) {
      run = &writers_[read_prefix(head).writer].emplace_back();
      run->first_iteration = *number;
      run->first_line = line_;
    }
    run->last_iteration = number;
    return *run;
  }

  void take_printed(std::string_view head, std::string_view rest) {
    TimerRun& run = last_run_of(head);
    const PrintedTimers printed = parse_printed_timers(head, rest);
    run.is_pipeline = run.is_pipeline || printed.is_pipeline;
    if (printed.unread) return run.unread.push_back({line_, *printed.unread, false});
    for (const ReportedTime& time : printed.times)
      add_time(run.of_printing_ranks[time.timer], time);
    run.is_megatron = run.is_megatron || printed.is_megatron;
    run.is_deepspeed = run.is_deepspeed || !printed.is_megatron;
  }

  /// Takes the timers of a line for the reports that are open. `known` is the run to which the line
  /// belongs, if that is certain.
  void take_timers(std::string_view line, TimerRun* known) {
    std::optional<TimerField> field = find_range_field(line);
    if (field) {
      TimerRun* const run = find_open(*field, TimerBlock::kRange, known);
      for (; run != nullptr && field; field = find_range_field(line)) {
        add_range(*run, *field, line_);
        line.remove_prefix(static_cast<std::size_t>(field->value.end() - line.begin()));
      }
    } else if ((field = find_rank_field(line))) {
      if (TimerRun* const run = find_open(*field, TimerBlock::kEveryRank, known))
        add_rank(*run, *field, line_);
    } else if ((field = find_number_field(line))) {
      TimerRun* const run = find_open(*field, TimerBlock::kLargest, known);
      if (run != nullptr && (field->has_dots || !run->is_interrupted))
        add_largest(*run, *field, line_);
    } else if ((field = find_name_field(line))) {
      // A launcher names the writers of empty lines too.
      if (writers_.contains(std::string(field->name) + ":")) return;
      if (TimerRun* const run = find_open(*field, TimerBlock::kEveryRank, known))
        begin_timer(*run, field->name);
    } else {
      open_->is_interrupted = true;
      if ((field = find_cut_field(line)))
        for (const TimerBlock block : {TimerBlock::kRange, TimerBlock::kLargest})
          if (TimerRun* const run = find_open(*field, block, known)) add_cut(*run, *field, line_);
    }
  }

  /// The run whose report a line belongs to. Loggers put their names before the first line
  /// of a message alone, so that the others belong to the last report.
  TimerRun* find_open(const TimerField& field, TimerBlock block, TimerRun* known) {
    if (known != nullptr) return known->block == block ? known : nullptr;
    const std::string name = read_prefix(field.head).writer;
    const auto own = writers_.find(name);
    if (own != writers_.end() && own->second.back().block == block) return &own->second.back();
    return name.empty() && open_->block == block ? open_ : nullptr;
  }

  std::string file_;
  std::string plain_;
  std::string_view text_;
  std::size_t line_ = 1;
  std::map<std::string, std::deque<TimerRun>> writers_;  ///< their runs, at least one each
  TimerRun* open_ = nullptr;                             ///< whose report was opened last
};

/// The logs of writers with timers, of which the first also tells what cannot be read of the
/// others.
std::vector<TimerLog> join_unread(std::vector<TimerLog> logs) {
  std::vector<UnreadNumber> unread;
  const auto lacks_timers = [&](const TimerLog& log) {
    if (!log.timers.empty()) return false;
    unread.insert(unread.end(), log.unread.begin(), log.unread.end());
    return true;
  };
  logs.erase(std::remove_if(logs.begin(), logs.end(), lacks_timers), logs.end());
  std::vector<UnreadNumber>& told = logs.front().unread;
  told.insert(told.end(), unread.begin(), unread.end());
  std::stable_sort(
      told.begin(), told.end(),
      [](const UnreadNumber& left, const UnreadNumber& right) { return left.line < right.line; });
  return logs;
}

}  // namespace

const LoggedTimer* TimerLog::find(std::string_view name) const {
  const auto found = std::find_if(timers.begin(), timers.end(),
                                  [&](const LoggedTimer& timer) { return timer.name == name; });
  return found == timers.end() ? nullptr : &*found;
}

std::vector<TimerLog> read_timer_logs(std::string_view text, const std::string& file) {
  std::vector<TimerLog> logs = Reader(text, file).read();
  if (std::any_of(logs.begin(), logs.end(),
                  [](const TimerLog& log) { return !log.timers.empty(); }))
    return join_unread(std::move(logs));
  if (logs.empty()) throw Error(file + ": it announces timers, but has none; give the whole log");
  const UnreadNumber& first = logs.front().unread.front();
  throw Error(fmt::format("{}:{}: {}; correct or remove the line", file, first.line, first.what));
}

const TimerLog& expect_one_writer(const std::vector<TimerLog>& logs) {
  if (logs.size() == 1) return logs.front();
  std::string writers;
  for (const TimerLog& log : logs) writers += (writers.empty() ? "" : ", ") + quote(log.writer);
  throw Error(
      fmt::format("{} has the timers of {} writers, whose lines begin with {}; give the "
                  "lines of each as a log of its own",
                  logs.front().file, logs.size(), writers));
}

TimerLog read_timer_log(std::string_view text, const std::string& file) {
  return expect_one_writer(read_timer_logs(text, file));
}

}  // namespace bubblescope::traces
