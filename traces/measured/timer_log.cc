// Reads the timers that training logs print.
#include "traces/measured/timer_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "sim/ir/quantile.h"
#include "traces/files/quote.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

constexpr std::string_view kMinMax = "(min, max) time across ranks (ms):";
constexpr std::string_view kMax = "max time across ranks (ms):";
constexpr std::string_view kAll = "times across ranks (ms):";
constexpr std::string_view kDeepSpeed = "time (ms) |";
constexpr std::string_view kElapsed = "elapsed time per iteration (ms):";
constexpr std::string_view kElapsedSeconds = "iter time (s):";  // DeepSpeed's
constexpr const char* kTrainBatch = "train_batch";              // one of its timers

/// The values of one timer, one per report.
struct Values {
  std::vector<double> min;
  std::vector<double> max;
  std::map<std::int32_t, std::vector<double>> by_rank;
};

double median(std::vector<double> values) {
  return values.empty() ? 0 : quantile(std::move(values), 50);
}

/// Launchers may put a rank before every line: "[default7]:" (torchrun), "12: " (srun -l).
std::string_view without_launcher(std::string_view line) {
  const auto is_word = [](std::string_view text, bool letters) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [letters](char letter) {
      const auto sign = static_cast<unsigned char>(letter);
      return letters ? std::isalnum(sign) != 0 : std::isdigit(sign) != 0;
    });
  };
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return line;
  const std::string_view before = line.substr(0, colon);
  const bool in_brackets = before.starts_with('[') && before.ends_with(']') && before.size() > 2;
  if (in_brackets ? is_word(before.substr(1, before.size() - 2), true) : is_word(before, false))
    return strip(line.substr(colon + 1));
  return line;
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text) { log_.file = file; }

  TimerLog read() && {
    while (!text_.empty()) {
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      ++line_;
      take(without_launcher(strip(text_.substr(0, end))));
      text_.remove_prefix(std::min(text_.size(), end + 1));
    }
    for (auto& [name, values] : values_) finish(name, values);
    if (elapsed_.empty())
      if (const auto batch = values_.find(kTrainBatch); batch != values_.end())
        elapsed_ = batch->second.max;
    if (const double iteration = median(elapsed_); iteration > 0) log_.iteration_ms = iteration;
    return std::move(log_);
  }

 private:
  enum class Block : std::uint8_t { kNone, kRange, kLargest, kEveryRank };

  void take(std::string_view line) {
    if (const std::size_t at = line.find(kElapsed); at != line.npos)
      elapsed_.push_back(leading_number(line.substr(at + kElapsed.size())));
    if (const std::size_t at = line.find(kElapsedSeconds); at != line.npos)
      elapsed_.push_back(1000 * leading_number(line.substr(at + kElapsedSeconds.size())));
    if (const std::size_t at = line.find(kDeepSpeed); at != line.npos)
      return take_deepspeed(line.substr(at + kDeepSpeed.size()));
    if (line.ends_with(kMinMax)) {
      block_ = Block::kRange;
    } else if (line.ends_with(kAll)) {
      block_ = Block::kEveryRank;
    } else if (line.ends_with(kMax)) {
      block_ = Block::kLargest;
    } else if (block_ != Block::kNone && !take_timer(line)) {
      block_ = Block::kNone;
    }
  }

  /// "forward-compute ......: (310.02, 402.11)"; false for any other line.
  bool take_timer(std::string_view line) {
    const std::size_t colon = line.rfind(':');
    if (colon == line.npos || colon == 0) return false;
    std::string_view name = strip(line.substr(0, colon));
    const std::string_view value = strip(line.substr(colon + 1));
    name = strip(name.substr(0, name.find_last_not_of('.') + 1));
    if (block_ == Block::kEveryRank) return take_rank(name, value);
    if (name.empty() || name.find(' ') != name.npos || value.empty()) return false;
    if (block_ == Block::kLargest && !parse_number<double>(value)) return false;
    Values& values = values_[std::string(name)];
    if (block_ == Block::kLargest) {
      values.max.push_back(whole_number(value));
      return true;
    }
    const std::size_t comma = value.find(',');
    if (!value.starts_with('(') || !value.ends_with(')') || comma == value.npos) return false;
    values.min.push_back(whole_number(value.substr(1, comma - 1)));
    values.max.push_back(whole_number(value.substr(comma + 1, value.size() - comma - 2)));
    if (values.min.back() > values.max.back())
      throw Error(
          fmt::format("{}:{}: {} has a minimum over its maximum; correct or remove the line",
                      log_.file, line_, quote(value)));
    return true;
  }

  bool take_rank(std::string_view name, std::string_view value) {
    if (value.empty()) {
      timer_ = std::string(name);
      return !timer_.empty() && timer_.find(' ') == timer_.npos;
    }
    if (!name.starts_with("rank") || timer_.empty()) return false;
    const auto rank = parse_number<std::int32_t>(strip(name.substr(4)));
    if (!rank || *rank < 0) return false;
    values_[timer_].by_rank[*rank].push_back(whole_number(value));
    return true;
  }

  /// "fwd: 6567.66 | bwd: 17950.35"
  void take_deepspeed(std::string_view rest) {
    log_.is_deepspeed = true;
    while (!rest.empty()) {
      const std::string_view field = strip(rest.substr(0, rest.find('|')));
      rest.remove_prefix(
          std::min(rest.size(), rest.find('|') == rest.npos ? rest.size() : rest.find('|') + 1));
      const std::size_t colon = field.find(':');
      if (colon == field.npos) continue;
      Values& values = values_[std::string(strip(field.substr(0, colon)))];
      values.min.push_back(leading_number(field.substr(colon + 1)));
      values.max.push_back(values.min.back());
    }
  }

  double leading_number(std::string_view text) const {
    text = strip(text);
    return whole_number(text.substr(0, text.find_first_of(" |\t")));
  }

  double whole_number(std::string_view text) const {
    text = strip(text);
    constexpr double kMaxNumber = 1e11;  // three years
    const auto number = parse_number<double>(text);
    if (!number || !(*number >= 0 && *number <= kMaxNumber)) refuse(text);
    return std::abs(*number);  // "-0" is a zero
  }

  [[noreturn]] void refuse(std::string_view text) const {
    throw Error(fmt::format("{}:{}: {} is not a time in milliseconds; correct or remove the line",
                            log_.file, line_, quote(text)));
  }

  void finish(const std::string& name, const Values& values) {
    LoggedTimer timer{name, {}, 0, {}};
    std::size_t reports = values.max.size();
    for (const auto& [rank, of_rank] : values.by_rank) {
      timer.by_rank[rank] = median(of_rank);
      reports = std::max(reports, of_rank.size());
    }
    timer.max_ms = median(values.max);
    if (!values.min.empty()) timer.min_ms = median(values.min);
    if (!timer.by_rank.empty()) {
      timer.min_ms = timer.by_rank.begin()->second;
      for (const auto& [_, time] : timer.by_rank) {
        timer.min_ms = std::min(*timer.min_ms, time);
        timer.max_ms = std::max(timer.max_ms, time);
      }
    }
    log_.reports = std::max(log_.reports, reports);
    log_.timers.push_back(std::move(timer));
  }

  std::string_view text_;
  TimerLog log_;
  std::size_t line_ = 0;
  Block block_ = Block::kNone;
  std::string timer_;
  std::map<std::string, Values> values_;
  std::vector<double> elapsed_;
};

}  // namespace

const LoggedTimer* TimerLog::find(std::string_view name) const {
  const auto found = std::find_if(timers.begin(), timers.end(),
                                  [&](const LoggedTimer& timer) { return timer.name == name; });
  return found == timers.end() ? nullptr : &*found;
}

namespace {

/// Every rank's own share, where the log has every rank: the rank with the longest forwards need
/// not have the longest backwards.
std::optional<ShareRange> find_share_by_rank(const LoggedTimer& forward,
                                             const LoggedTimer& backward, double iteration_ms) {
  std::optional<ShareRange> range;
  for (const auto& [rank, time] : forward.by_rank) {
    const auto other = backward.by_rank.find(rank);
    if (other == backward.by_rank.end()) return {};
    const double outside = std::max(0.0, 1 - (time + other->second) / iteration_ms);
    if (!range) range = ShareRange{outside, outside};
    *range = {std::min(range->low, outside), std::max(range->high, outside)};
  }
  return range;
}

}  // namespace

bool is_timer_log(std::string_view text) {
  const std::string_view begin = strip(text.substr(0, 96));
  if (begin.starts_with('{') || begin.starts_with("SQLite")) return false;
  return text.find("across ranks (ms):") != text.npos || text.find(kDeepSpeed) != text.npos;
}

TimerLog read_timer_log(std::string_view text, const std::string& file) {
  TimerLog log = Reader(text, file).read();
  if (log.timers.empty())
    throw Error(file + ": it announces timers, but has none; give the whole log");
  return log;
}

std::optional<ShareRange> find_share_outside(const TimerLog& log) {
  const LoggedTimer* const forward = log.find("forward-compute");
  const LoggedTimer* const backward = log.find("backward-compute");
  if (!forward || !backward || !log.iteration_ms || *log.iteration_ms <= 0) return {};
  if (const std::optional<ShareRange> exact =
          find_share_by_rank(*forward, *backward, *log.iteration_ms))
    return exact;
  const double min_share =
      (forward->min_ms.value_or(0) + backward->min_ms.value_or(0)) / *log.iteration_ms;
  const double max_share = (forward->max_ms + backward->max_ms) / *log.iteration_ms;
  // Medians of different reports may not belong together.
  if (min_share > 1) return {};
  return ShareRange{std::max(0.0, 1 - max_share), 1 - min_share};
}

}  // namespace bubblescope::traces
