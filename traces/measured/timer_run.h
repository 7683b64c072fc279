// Collects what a writer of a training log printed in one run: its iterations and its reports of
// timers.
//
// A report is kept when it ends, so that one with a number that cannot be read is left out as a
// whole. Where iterations begin again with a smaller number, a further run was appended to the log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/measured/timer_log.h"
#include "traces/measured/timer_shares.h"

namespace bubblescope::traces {

/// A report of timers begins with a line that says over which ranks they are.
enum class TimerBlock : std::uint8_t { kNone, kRange, kLargest, kEveryRank };

inline constexpr std::string_view kTrainBatchTimer = "train_batch";  // DeepSpeed's

/// The values of one timer, one per report.
struct TimerValues {
  std::vector<double> min;
  std::vector<double> max;
  std::map<std::int32_t, std::vector<double>> by_rank;
};

/// A value of the report that is being read.
struct ReportedTime {
  std::string timer;
  std::optional<std::int32_t> rank = {};  ///< of which it is; empty for one over ranks
  std::optional<double> min_ms = {};
  double max_ms = 0;  ///< or that of the rank
};

/// A run of a writer.
struct TimerRun {
  TimerBlock block = TimerBlock::kNone;
  bool is_interrupted = false;  ///< another line stood amid the block
  bool is_unread = false;       ///< the report has a number that cannot be read
  TimerReport report;
  std::vector<ReportedTime> times;     ///< of the report
  std::string timer;                   ///< whose ranks are being listed
  std::int32_t last_rank = -1;         ///< in that list
  std::optional<double> iteration_ms;  ///< of the last iteration, until a report takes it
  std::vector<double> elapsed;
  std::map<std::string, TimerValues> of_all_ranks;
  std::map<std::string, TimerValues> of_printing_ranks;
  TimerShares shares;
  std::vector<UnreadNumber> unread;
  std::optional<std::int64_t> last_iteration;  ///< its number
  std::int64_t first_iteration = 0;            ///< of a run that was appended
  std::size_t first_line = 1;
  bool is_megatron = false;
  bool is_deepspeed = false;
  bool is_pipeline = false;  ///< of DeepSpeed
};

/// Keeps the report that is open, unless it is unread.
void close_report(TimerRun& run);

/// Adds a value to those of a timer.
void add_time(TimerValues& values, const ReportedTime& time);

/// The log of a writer, given its runs: that of the last one with timers, with the numbers of this
/// one and of later ones that cannot be read; without timers where there are none.
TimerLog summarize_runs(const std::deque<TimerRun>& runs, const std::string& name,
                        const std::string& file);

}  // namespace bubblescope::traces
