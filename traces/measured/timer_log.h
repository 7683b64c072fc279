// The timers that training logs print: Megatron-LM's (--timing-log-level 2) and DeepSpeed's
// (wall_clock_breakdown).
//
//   (min, max) time across ranks (ms):              times across ranks (ms):
//       forward-compute ......: (310.02, 402.11)      forward-compute:
//       backward-compute .....: (611.90, 803.55)         rank  0: 310.02
//   iteration  20/ 100 | elapsed time per iteration (ms): 2213.4 | ...
//   steps: 10 loss: 3.1234 iter time (s): 1.500 samples/sec: 85.3
//   [Rank 0] time (ms) | fwd: 6567.66 | bwd: 17950.35 | step: 1139.29
//   time (ms) | forward-compute: 310.02 | backward-compute: 611.90     Megatron-LM until 2022
//
// A log has neither a timeline nor the order of ops. Timers over all ranks bound how much of an
// iteration each rank computes; the last two lines are of the rank alone that printed them. That is
// all that is reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/measured/timer_shares.h"

namespace bubblescope::traces {

/// One timer: medians over the reports of the log, in milliseconds per iteration.
struct LoggedTimer {
  std::string name;
  std::optional<double> min_ms = {};  ///< over ranks; empty where the log has the longest alone
  double max_ms = 0;
  std::map<std::int32_t, double> by_rank = {};  ///< where the log has each rank
  bool is_of_all_ranks = true;                  ///< false: of those alone that printed it
};

/// A line with a number that cannot be read. What it belongs to is left out.
struct UnreadNumber {
  std::size_t line = 0;
  std::string what = {};      ///< "'nan' is not a time in milliseconds"
  bool is_iteration = false;  ///< the time of an iteration is left out, else a report of timers
};

/// The timers of one writer: of all lines with the same name of a process or node before them.
struct TimerLog {
  std::string file;
  std::string writer = {};   ///< what its lines begin with: "worker-3:"; mostly empty
  bool is_megatron = false;  ///< it has timers of Megatron-LM
  bool is_deepspeed = false;
  bool sums_steps = false;                  ///< DeepSpeed's timers are sums over several steps
  std::size_t reports = 0;                  ///< times that the most frequent timer was printed
  std::vector<LoggedTimer> timers = {};     ///< those of all ranks first
  std::optional<double> iteration_ms = {};  ///< median
  std::optional<ShareRange> outside = {};
  std::map<std::int32_t, RankShare> ranks = {};  ///< where the log has each rank
  std::size_t unfit_reports = 0;                 ///< without a share, as they are cut or contradict
  std::vector<UnreadNumber> unread = {};
  std::size_t runs = 1;                ///< in the log, one after another
  std::size_t run = 1;                 ///< which of them this is: the last one with timers
  std::int64_t restart_iteration = 0;  ///< at which the last of several runs begins
  std::size_t restart_line = 1;

  const LoggedTimer* find(std::string_view name) const;
};

/// Whether a text has such timers.
bool is_timer_log(std::string_view text);

/// Whether a text is a log of training without such timers, and no trace either.
bool is_training_log(std::string_view text);

/// Whether such a log has timers without the line before them that says over which ranks they are.
bool lacks_timer_header(std::string_view text);

/// Whether a text begins as a trace does: as json or as a database.
bool begins_as_trace(std::string_view text);

/// Reads the timers of every writer that has some; of runs that were appended to each other, those
/// of the last. A report with a number that cannot be read is left out. Throws Error, with its
/// line, if there is no other.
std::vector<TimerLog> read_timer_logs(std::string_view text, const std::string& file);

/// The log of one writer; throws Error where there are several.
const TimerLog& expect_one_writer(const std::vector<TimerLog>& logs);

/// Reads the timers of a log of one writer; throws Error where there are several.
TimerLog read_timer_log(std::string_view text, const std::string& file);

/// Says, in whole sentences, which runs and reports are left out.
std::vector<std::string> describe_left_out(const TimerLog& log);

/// Write what the log tells, and what it does not.
std::string write_timer_log_text(const TimerLog& log);
std::string write_timer_log_json(const TimerLog& log);
std::string write_timer_log_csv(const TimerLog& log);

}  // namespace bubblescope::traces
