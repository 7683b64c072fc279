// The timers that training logs print: Megatron-LM's (--timing-log-level 2) and DeepSpeed's
// (wall_clock_breakdown).
//
//   (min, max) time across ranks (ms):              times across ranks (ms):
//       forward-compute ......: (310.02, 402.11)      forward-compute:
//       backward-compute .....: (611.90, 803.55)         rank  0: 310.02
//   iteration  20/ 100 | elapsed time per iteration (ms): 2213.4 | ...
//   steps: 10 loss: 3.1234 iter time (s): 1.500 samples/sec: 85.3
//   [Rank 0] time (ms) | fwd: 6567.66 | bwd: 17950.35 | step: 1139.29
//
// A log has neither a timeline nor the order of ops. It bounds how much of an iteration each rank
// computes, and that is all that is reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bubblescope::traces {

/// One timer: medians over the reports of the log, in milliseconds per iteration.
struct LoggedTimer {
  std::string name;
  std::optional<double> min_ms = {};  ///< over ranks; empty where the log has the longest alone
  double max_ms = 0;
  std::map<std::int32_t, double> by_rank;  ///< where the log has each rank
};

struct TimerLog {
  std::string file;
  bool is_deepspeed = false;
  std::size_t reports = 0;  ///< times that the most frequent timer was printed
  std::vector<LoggedTimer> timers;
  std::optional<double> iteration_ms;  ///< median

  const LoggedTimer* find(std::string_view name) const;
};

/// The least and the largest share of an iteration that a rank may spend outside forward and
/// backward.
struct ShareRange {
  double low = 0;
  double high = 1;
};

/// Whether a text has such timers.
bool is_timer_log(std::string_view text);

/// Throws Error for a timer that is not a time, with its line.
TimerLog read_timer_log(std::string_view text, const std::string& file);

/// The share of an iteration outside forward-compute and backward-compute, over all ranks; nullopt
/// without these timers or the iteration's time, and where they contradict each other.
std::optional<ShareRange> find_share_outside(const TimerLog& log);

/// Each writes what the log tells, and what it does not.
std::string write_timer_log_text(const TimerLog& log);
std::string write_timer_log_json(const TimerLog& log);
std::string write_timer_log_csv(const TimerLog& log);

}  // namespace bubblescope::traces
