// Walks along the launches of a process.
#include "traces/measured/nsys_ops.h"

#include <fmt/format.h>

#include <algorithm>

namespace bubblescope::traces {

namespace {

/// Clocks of host and device agree to a few microseconds.
constexpr Nanos kMaxClockError = 1'000'000;
/// The share of a process's kernel time that may lie between ops: clipping and scaling gradients.
constexpr double kMaxStray = 0.01;

bool starts_before(const CudaCall& launch, Nanos time) { return launch.start < time; }

}  // namespace

NsysProcess::NsysProcess(const NsysRecording& recording, std::int64_t process) {
  static const std::vector<CudaCall> none;
  const auto launches = recording.launches.find(process);
  launches_ = launches == recording.launches.end() ? &none : &launches->second;
  const auto works = recording.works.find(process);
  if (works != recording.works.end()) works_ = &works->second;
}

std::optional<TimeSpan> NsysProcess::find_works(const TimeSpan& range, bool messages, LaunchedBy by,
                                                std::int64_t thread) {
  if (!has_works()) return {};
  std::optional<TimeSpan> span;
  auto launch = std::lower_bound(launches_->begin(), launches_->end(), range.start, starts_before);
  for (; launch != launches_->end() && launch->start <= range.end; ++launch) {
    if (by != LaunchedBy::kAll && (launch->thread == thread) != (by == LaunchedBy::kOwn)) continue;
    const auto found = works_->find(launch->correlation);
    if (found == works_->end()) {
      if (launch->launches_kernel) ++without_kernel_;
      continue;
    }
    const DeviceWork& work = found->second;
    if (work.is_message != messages) continue;
    if (work.start < launch->start - kMaxClockError) ++before_launch_;
    if (!span) span = TimeSpan{work.start, work.end};
    span->start = std::min(span->start, work.start);
    span->end = std::max(span->end, work.end);
  }
  return span;
}

std::optional<Nanos> NsysProcess::first_launch_by_others(const TimeSpan& range,
                                                         std::int64_t thread) const {
  if (!has_works()) return {};
  auto launch = std::lower_bound(launches_->begin(), launches_->end(), range.start, starts_before);
  for (; launch != launches_->end() && launch->start <= range.end; ++launch)
    if (launch->thread != thread && works_->contains(launch->correlation)) return launch->start;
  return {};
}

std::vector<std::string> NsysProcess::find_doubts(const std::vector<std::vector<TimeSpan>>& steps,
                                                  const std::string& where) const {
  std::vector<std::string> doubts;
  if (without_kernel_ > 0)
    doubts.push_back(
        fmt::format("{}: {} launch(es) within ops have no kernel in the file, so that "
                    "ops may appear shorter than they were",
                    where, without_kernel_));
  if (before_launch_ > 0)
    doubts.push_back(fmt::format(
        "{}: {} kernel(s) begin before they were launched: the file was changed, or its clocks "
        "differ",
        where, before_launch_));
  if (!has_works()) return doubts;
  Nanos inside = 0;
  Nanos stray = 0;
  std::unordered_set<std::int64_t> launched;
  for (const CudaCall& launch : *launches_) launched.insert(launch.correlation);
  for (const std::vector<TimeSpan>& step : steps) {
    auto launch =
        std::lower_bound(launches_->begin(), launches_->end(), step.front().start, starts_before);
    std::size_t at = 0;
    Nanos covered = step.front().end;
    for (; launch != launches_->end() && launch->start <= step.back().end; ++launch) {
      while (at + 1 < step.size() && step[at + 1].start <= launch->start)
        covered = std::max(covered, step[++at].end);
      const auto found = works_->find(launch->correlation);
      if (found == works_->end() || found->second.is_message) continue;
      (launch->start <= covered ? inside : stray) += found->second.end - found->second.start;
    }
  }
  std::size_t unlaunched = 0;
  for (const auto& [correlation, work] : *works_)
    if (!launched.contains(correlation) && !steps.empty() &&
        work.start > steps.front().front().start && work.start < steps.back().back().end)
      ++unlaunched;
  if (unlaunched > 0)
    doubts.push_back(fmt::format("{}: {} kernel(s) have no launch in the file and are in no op",
                                 where, unlaunched));
  if (static_cast<double>(stray) > kMaxStray * static_cast<double>(inside + stray))
    doubts.push_back(fmt::format(
        "{}: {:.1f} % of the kernels' time between the first and the last op of a step was "
        "launched in no op: ranges are missing, or do not enclose their launches",
        where, 100.0 * static_cast<double>(stray) / static_cast<double>(inside + stray)));
  return doubts;
}

}  // namespace bubblescope::traces
