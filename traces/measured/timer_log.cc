// Reads the timers that training logs print.
#include "traces/measured/timer_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "sim/ir/quantile.h"
#include "traces/files/quote.h"
#include "traces/measured/log_prefix.h"
#include "traces/measured/timer_fields.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

/// A report of timers begins with a line that says over which ranks they are.
enum class Block : std::uint8_t { kNone, kRange, kLargest, kEveryRank };

constexpr std::array<std::pair<std::string_view, Block>, 3> kHeaders{{
    {"(min, max) time across ranks (ms):", Block::kRange},
    {"max time across ranks (ms):", Block::kLargest},
    {"times across ranks (ms):", Block::kEveryRank},
}};
constexpr std::string_view kPrinted = "time (ms) |";  // timers of one rank in one line

/// The time of an iteration.
struct ElapsedMark {
  std::string_view text;
  std::string_view line_begin;  ///< how the message around it begins
  double ms = 1;                ///< one unit of its number
};
constexpr ElapsedMark kPipeline{"iter time (s):", "steps:", 1000};  // DeepSpeed's pipelines alone
constexpr std::array kElapsed{
    ElapsedMark{"elapsed time per iteration (ms):", "iteration"},
    ElapsedMark{"elapsed time per iteration (s):", "iteration", 1000},
    ElapsedMark{"elapsed_time_per_iteration_ms=", "iteration"},
    kPipeline,
};
constexpr std::string_view kTrainBatch = "train_batch";  // a timer of DeepSpeed
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// The values of one timer, one per report.
struct Values {
  std::vector<double> min;
  std::vector<double> max;
  std::map<std::int32_t, std::vector<double>> by_rank;
};

/// The text before the first space, or before the mark between two fields.
std::string_view first_word(std::string_view text) {
  text = strip(text);
  return text.substr(0, text.find_first_of(" |\t"));
}

double median(std::vector<double> values) {
  return values.empty() ? 0 : quantile(std::move(values), 50);
}

/// All that one writer printed.
struct Writer {
  Block block = Block::kNone;
  bool is_interrupted = false;  ///< another line stood amid the block
  TimerReport report;
  std::string timer;                   ///< whose ranks are being listed
  std::int32_t last_rank = -1;         ///< in that list
  std::optional<double> iteration_ms;  ///< of the last iteration, until a report takes it
  std::vector<double> elapsed;
  std::map<std::string, Values> of_all_ranks;
  std::map<std::string, Values> of_printing_ranks;
  TimerShares shares;
  bool is_megatron = false;
  bool is_deepspeed = false;
  bool is_pipeline = false;  ///< of DeepSpeed
};

void close_report(Writer& writer) {
  writer.shares.add(writer.report);
  writer.report = {};
  writer.block = Block::kNone;
  writer.is_interrupted = false;
  writer.timer.clear();
}

LoggedTimer summarize(const std::string& name, const Values& values, bool is_of_all_ranks) {
  LoggedTimer timer{name, {}, median(values.max), {}, is_of_all_ranks};
  if (!values.min.empty()) timer.min_ms = median(values.min);
  for (const auto& [rank, of_rank] : values.by_rank) {
    const double time = median(of_rank);
    timer.min_ms = timer.by_rank.empty() ? time : std::min(*timer.min_ms, time);
    timer.max_ms = timer.by_rank.empty() ? time : std::max(timer.max_ms, time);
    timer.by_rank[rank] = time;
  }
  return timer;
}

std::size_t count_reports(const Values& values) {
  std::size_t count = values.max.size();
  for (const auto& [_, of_rank] : values.by_rank) count = std::max(count, of_rank.size());
  return count;
}

/// DeepSpeed's timer of whole iterations, where nothing else tells their time. In a pipeline it may
/// be a sum as well.
std::vector<double> find_train_batches(const Writer& writer) {
  const auto found = writer.of_printing_ranks.find(std::string(kTrainBatch));
  if (found == writer.of_printing_ranks.end() || writer.is_pipeline) return {};
  const Values& values = found->second;
  return values.by_rank.empty() ? values.max : values.by_rank.begin()->second;
}

/// Whether DeepSpeed's timers are longer than what they are parts of.
bool exceeds_iteration(const TimerLog& log) {
  return log.iteration_ms &&
         std::any_of(log.timers.begin(), log.timers.end(), [&](const LoggedTimer& timer) {
           return !timer.is_of_all_ranks && timer.name != kTrainBatch &&
                  timer.max_ms > *log.iteration_ms;
         });
}

TimerLog summarize(const Writer& writer, const std::string& name, const std::string& file) {
  TimerLog log;
  log.file = file;
  log.writer = name;
  log.is_megatron = writer.is_megatron;
  log.is_deepspeed = writer.is_deepspeed;
  for (const bool is_of_all_ranks : {true, false})
    for (const auto& [timer, values] :
         is_of_all_ranks ? writer.of_all_ranks : writer.of_printing_ranks) {
      log.timers.push_back(summarize(timer, values, is_of_all_ranks));
      log.reports = std::max(log.reports, count_reports(values));
    }
  const double iteration =
      median(writer.elapsed.empty() ? find_train_batches(writer) : writer.elapsed);
  if (iteration > 0) log.iteration_ms = iteration;
  log.sums_steps = log.is_deepspeed && (writer.is_pipeline || exceeds_iteration(log));
  log.outside = writer.shares.find_range();
  log.ranks = writer.shares.find_ranks();
  log.unfit_reports = writer.shares.unfit();
  return log;
}

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
      // Progress bars return to the beginning of a line that goes on.
      if (end < text_.size() && (text_[end] == '\n' || !has_newlines)) ++line_;
      text_.remove_prefix(std::min(text_.size(), end + 1));
    }
    std::vector<TimerLog> logs;
    for (auto& [name, writer] : writers_) {
      close_report(writer);
      TimerLog log = summarize(writer, name, file_);
      if (!log.timers.empty()) logs.push_back(std::move(log));
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
      open_ = &writers_[read_prefix(line.substr(0, at)).writer];
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

  void take_iteration(std::string_view line) {
    if (const std::optional<std::size_t> begin = find_iteration(line))
      begin_iteration(line.substr(0, *begin));
    for (const ElapsedMark& mark : kElapsed) {
      const std::size_t at = line.find(mark.text);
      if (at == line.npos) continue;
      Writer& writer = begin_iteration(line.substr(0, std::min(line.find(mark.line_begin), at)));
      const std::string_view value = strip(line.substr(at + mark.text.size()));
      if (value.find(' ') == value.npos) continue;  // the line is cut
      writer.iteration_ms = mark.ms * read_number(first_word(value));
      writer.elapsed.push_back(*writer.iteration_ms);
      writer.is_pipeline = writer.is_pipeline || mark.text == kPipeline.text;
    }
  }

  Writer& begin_iteration(std::string_view head) {
    Writer& writer = writers_[read_prefix(head).writer];
    close_report(writer);
    writer.iteration_ms.reset();
    return writer;
  }

  /// "fwd: 6567.66 | bwd: 17950.35"
  void take_printed(std::string_view head, std::string_view rest) {
    Writer& writer = writers_[read_prefix(head).writer];
    const std::optional<std::int32_t> rank = find_printing_rank(head);
    bool is_deepspeed = rank.has_value();
    bool is_megatron = false;
    bool are_whole = false;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('|'), rest.size());
      const std::string_view field = rest.substr(0, end);
      rest.remove_prefix(std::min(rest.size(), end + 1));
      const std::size_t colon = field.find(':');
      if (colon == field.npos) continue;
      const std::string_view name = strip(field.substr(0, colon));
      const std::string_view value = first_word(field.substr(colon + 1));
      // The last field of a line that was cut may lack its value, or decimals that others have.
      if (rest.empty() && (value.empty() || (are_whole && !is_whole_time(value)))) continue;
      are_whole = is_whole_time(value);
      is_deepspeed = is_deepspeed || is_name_of_deepspeed(name);
      is_megatron = is_megatron || name == "forward-compute" || name == "backward-compute";
      writer.is_pipeline = writer.is_pipeline || is_name_of_pipeline(name);
      Values& values = writer.of_printing_ranks[std::string(name)];
      const double time = read_number(value);
      if (rank) {
        values.by_rank[*rank].push_back(time);
      } else {
        values.min.push_back(time);
        values.max.push_back(time);
      }
    }
    is_megatron = is_megatron || !is_deepspeed;
    writer.is_megatron = writer.is_megatron || is_megatron;
    writer.is_deepspeed = writer.is_deepspeed || !is_megatron;
  }

  /// Takes what the line has of the open reports: `known` is the writer where that is certain.
  void take_timers(std::string_view line, Writer* known) {
    std::optional<TimerField> field = find_range_field(line);
    if (field) {
      Writer* const writer = find_open(*field, Block::kRange, known);
      for (; writer != nullptr && field; field = find_range_field(line)) {
        take_range(*writer, *field);
        line.remove_prefix(static_cast<std::size_t>(field->value.end() - line.begin()));
      }
    } else if ((field = find_rank_field(line))) {
      if (Writer* const writer = find_open(*field, Block::kEveryRank, known))
        take_rank(*writer, *field);
    } else if ((field = find_number_field(line))) {
      Writer* const writer = find_open(*field, Block::kLargest, known);
      if (writer != nullptr && (field->has_dots || !writer->is_interrupted)) {
        const double time = read_number(field->value);
        if (!is_whole_time(field->value)) writer->report.is_garbled = true;
        writer->of_all_ranks[std::string(field->name)].max.push_back(time);
        put(*writer, *field, {0, time});
      }
    } else if ((field = find_name_field(line))) {
      // A launcher names the writers of empty lines too.
      if (writers_.contains(std::string(field->name) + ":")) return;
      if (Writer* const writer = find_open(*field, Block::kEveryRank, known)) {
        writer->report.add_name(field->name);
        writer->timer = std::string(field->name);
        writer->last_rank = -1;
      }
    } else {
      open_->is_interrupted = true;
      if ((field = find_cut_field(line)))
        for (const Block block : {Block::kRange, Block::kLargest})
          if (Writer* const writer = find_open(*field, block, known))
            writer->report.is_garbled = true;
    }
  }

  /// The writer of a line whose report it belongs to. Loggers put their names before the first line
  /// of a message alone, so that the others belong to the last report.
  Writer* find_open(const TimerField& field, Block block, Writer* known) {
    if (known != nullptr) return known->block == block ? known : nullptr;
    const std::string name = read_prefix(field.head).writer;
    const auto own = writers_.find(name);
    if (own != writers_.end() && own->second.block == block) return &own->second;
    return name.empty() && open_->block == block ? open_ : nullptr;
  }

  void take_range(Writer& writer, const TimerField& field) {
    const std::string_view text = field.value;
    const std::size_t comma = text.find(',');
    const double least = read_number(text.substr(1, comma - 1));
    const double most = read_number(text.substr(comma + 1, text.size() - comma - 2));
    if (least > most)
      throw Error(
          fmt::format("{}:{}: {} has a minimum over its maximum; correct or remove the line", file_,
                      line_, quote(text)));
    Values& values = writer.of_all_ranks[std::string(field.name)];
    values.min.push_back(least);
    values.max.push_back(most);
    put(writer, field, {least, most});
  }

  void take_rank(Writer& writer, const TimerField& field) {
    const double time = read_number(field.value);
    TimerReport& report = writer.report;
    // Ranks that begin anew belong to a timer whose name was lost.
    if (writer.timer.empty() || field.rank <= writer.last_rank) {
      report.is_garbled = true;
      writer.timer.clear();
      return;
    }
    writer.last_rank = field.rank;
    writer.of_all_ranks[writer.timer].by_rank[field.rank].push_back(time);
    report.ranks.insert(field.rank);
    if (!is_whole_time(field.value)) report.is_garbled = true;
    std::optional<ReportedTimer>* const timer = report.find(writer.timer);
    if (timer == nullptr) return;
    if (!*timer) *timer = ReportedTimer{};
    if (!(*timer)->by_rank.emplace(field.rank, time).second) report.is_garbled = true;
  }

  static void put(Writer& writer, const TimerField& field, ReportedTimer values) {
    writer.report.add_name(field.name);
    if (std::optional<ReportedTimer>* const timer = writer.report.find(field.name))
      *timer = std::move(values);
  }

  double read_number(std::string_view text) const {
    text = strip(text);
    constexpr double kMaxNumber = 1e11;  // three years
    const auto number = parse_number<double>(text);
    if (number && *number >= 0 && *number <= kMaxNumber)
      return std::abs(*number);  // "-0" is a zero
    throw Error(fmt::format("{}:{}: {} is not a time in milliseconds; correct or remove the line",
                            file_, line_, quote(text)));
  }

  std::string file_;
  std::string plain_;
  std::string_view text_;
  std::size_t line_ = 1;
  std::map<std::string, Writer> writers_;
  Writer* open_ = nullptr;  ///< whose report was opened last
};

}  // namespace

const LoggedTimer* TimerLog::find(std::string_view name) const {
  const auto found = std::find_if(timers.begin(), timers.end(),
                                  [&](const LoggedTimer& timer) { return timer.name == name; });
  return found == timers.end() ? nullptr : &*found;
}

std::vector<TimerLog> read_timer_logs(std::string_view text, const std::string& file) {
  std::vector<TimerLog> logs = Reader(text, file).read();
  if (logs.empty()) throw Error(file + ": it announces timers, but has none; give the whole log");
  return logs;
}

TimerLog read_timer_log(std::string_view text, const std::string& file) {
  std::vector<TimerLog> logs = read_timer_logs(text, file);
  if (logs.size() == 1) return std::move(logs.front());
  std::string writers;
  for (const TimerLog& log : logs) writers += (writers.empty() ? "" : ", ") + quote(log.writer);
  throw Error(
      fmt::format("{} has the timers of {} writers, whose lines begin with {}; give the "
                  "lines of each as a log of its own",
                  file, logs.size(), writers));
}

}  // namespace bubblescope::traces
