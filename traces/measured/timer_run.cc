// Summarizes the runs of a writer.
#include "traces/measured/timer_run.h"

#include <algorithm>
#include <utility>

#include "sim/ir/quantile.h"

namespace bubblescope::traces {

namespace {

double median(std::vector<double> values) {
  return values.empty() ? 0 : quantile(std::move(values), 50);
}

LoggedTimer summarize(const std::string& name, const TimerValues& values, bool is_of_all_ranks) {
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

std::size_t count_reports(const TimerValues& values) {
  std::size_t count = values.max.size();
  for (const auto& [_, of_rank] : values.by_rank) count = std::max(count, of_rank.size());
  return count;
}

/// DeepSpeed's timer of whole iterations, where nothing else tells their time. In a pipeline it may
/// be a sum as well.
std::vector<double> find_train_batches(const TimerRun& run) {
  const auto found = run.of_printing_ranks.find(std::string(kTrainBatchTimer));
  if (found == run.of_printing_ranks.end() || run.is_pipeline) return {};
  const TimerValues& values = found->second;
  return values.by_rank.empty() ? values.max : values.by_rank.begin()->second;
}

/// Whether DeepSpeed's timers are longer than what they are parts of.
bool exceeds_iteration(const TimerLog& log) {
  return log.iteration_ms &&
         std::any_of(log.timers.begin(), log.timers.end(), [&](const LoggedTimer& timer) {
           return !timer.is_of_all_ranks && timer.name != kTrainBatchTimer &&
                  timer.max_ms > *log.iteration_ms;
         });
}

TimerLog summarize(const TimerRun& run, const std::string& name, const std::string& file) {
  TimerLog log;
  log.file = file;
  log.writer = name;
  log.is_megatron = run.is_megatron;
  log.is_deepspeed = run.is_deepspeed;
  for (const bool is_of_all_ranks : {true, false})
    for (const auto& [timer, values] : is_of_all_ranks ? run.of_all_ranks : run.of_printing_ranks) {
      log.timers.push_back(summarize(timer, values, is_of_all_ranks));
      log.reports = std::max(log.reports, count_reports(values));
    }
  const double iteration = median(run.elapsed.empty() ? find_train_batches(run) : run.elapsed);
  if (iteration > 0) log.iteration_ms = iteration;
  log.sums_steps = log.is_deepspeed && (run.is_pipeline || exceeds_iteration(log));
  log.outside = run.shares.find_range();
  log.ranks = run.shares.find_ranks();
  log.unfit_reports = run.shares.unfit();
  return log;
}

}  // namespace

void add_time(TimerValues& values, const ReportedTime& time) {
  if (time.rank) {
    values.by_rank[*time.rank].push_back(time.max_ms);
    return;
  }
  if (time.min_ms) values.min.push_back(*time.min_ms);
  values.max.push_back(time.max_ms);
}

void close_report(TimerRun& run) {
  if (!run.is_unread) {
    run.shares.add(run.report);
    for (const ReportedTime& time : run.times) add_time(run.of_all_ranks[time.timer], time);
  }
  run.report = {};
  run.times.clear();
  run.block = TimerBlock::kNone;
  run.is_interrupted = false;
  run.is_unread = false;
  run.timer.clear();
}

TimerLog summarize_runs(const std::deque<TimerRun>& runs, const std::string& name,
                        const std::string& file) {
  TimerLog log;
  std::vector<UnreadNumber> unread;
  for (std::size_t at = runs.size(); at > 0 && log.timers.empty(); --at) {
    const TimerRun& run = runs[at - 1];
    log = summarize(run, name, file);
    log.run = at;
    unread.insert(unread.begin(), run.unread.begin(), run.unread.end());
  }
  log.unread = std::move(unread);
  log.runs = runs.size();
  log.restart_iteration = runs.back().first_iteration;
  log.restart_line = runs.back().first_line;
  return log;
}

}  // namespace bubblescope::traces
