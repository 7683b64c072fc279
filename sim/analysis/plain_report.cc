// Adds up what ranks did.
#include "sim/analysis/plain_report.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "sim/analysis/analyze.h"
#include "sim/analysis/idle.h"
#include "sim/ir/timeline.h"

namespace bubblescope::inline sim {

BubbleReport begin_plain_report(const Schedule& schedule, const MemoryModel& memory) {
  BubbleReport report;
  report.source = Timeline{}.source;
  report.schedule = schedule.name;
  report.shape = schedule.shape;
  report.ranks.resize(schedule.order.size());
  report.memory = memory;
  return report;
}

void report_waits(const PlainRank& rank, RankReport& report) {
  const auto idle = [&](IdleCause cause) -> Nanos& {
    return report.idle_by_cause[static_cast<std::size_t>(cause)];
  };
  report.first_start = rank.first_start.value_or(0);
  report.last_end = rank.free_from;
  idle(IdleCause::kWarmup) = report.first_start;
  idle(IdleCause::kCommunication) = rank.communication;
  idle(IdleCause::kDependency) = rank.dependency;
}

void add_work(const std::array<Nanos, kPlainKinds>& busy, RankReport& report) {
  for (std::size_t kind = 0; kind < kPlainKinds; ++kind) {
    const BusyKind busy_kind = classify_busy(static_cast<OpKind>(kind));
    report.busy += busy[kind];
    report.busy_by_kind[static_cast<std::size_t>(busy_kind)] += busy[kind];
  }
}

BubbleReport complete_plain_report(BubbleReport report, std::span<const PlainStage> stages) {
  for (const PlainStage& stage : stages)
    report.ranks[static_cast<std::size_t>(stage.rank)].sends += stage.sends();
  StepBounds bounds;
  for (const RankReport& rank : report.ranks) bounds.end = std::max(bounds.end, rank.last_end);
  report.ranks = complete_idle_times(std::move(report.ranks), bounds, 0);
  return with_totals(std::move(report));
}

}  // namespace bubblescope::inline sim
