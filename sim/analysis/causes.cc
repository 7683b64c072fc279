// Estimates what each cause costs by replaying all replicas with that cause removed.
#include "sim/analysis/causes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "sim/analysis/cause_evidence.h"
#include "sim/analysis/cause_list.h"
#include "sim/analysis/coupled_replay.h"
#include "sim/analysis/equal_work.h"
#include "sim/analysis/mean.h"
#include "sim/analysis/op_causes.h"
#include "sim/analysis/pauses.h"
#include "sim/analysis/worker_causes.h"
#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

constexpr double kMaxDropped = 0.05;  ///< as a fraction of the step
constexpr double kOfOneLink = 0.5;    ///< a link is named from this part of what free messages save

void add_messages(CauseList& causes) {
  if (const std::optional<SlowLink> link = find_slow_link(causes.steps())) {
    const Counterfactual usual = with_usual_link(*link);
    if (causes.time_saved(usual) >= kOfOneLink * causes.time_saved(with_free_messages))
      causes.add({ExposedMessages{link}}, usual);
  }
  causes.add({ExposedMessages{}}, with_free_messages);
}

LongGaps describe_gaps(std::span<const ReplicatedStep> steps, std::int32_t rank) {
  LongGaps gaps{rank};
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const std::int64_t count = count_pauses(steps.subspan(step, 1));
    gaps.count += count;
    gaps.steps += count > 0 ? 1 : 0;
  }
  return gaps;
}

/// Gaps make the steps longer than their replay, so they have a baseline of their own.
void add_gaps(CauseList& causes) {
  const std::span<const ReplicatedStep> steps = causes.steps();
  const std::vector<double> all = causes.replay({with_gaps()});
  const double time_of_ranks =
      std::accumulate(all.begin(), all.end(), 0.0) * static_cast<double>(causes.replicas());
  const auto add_kind = [&](GapKind kind, const auto& make_facts) {
    const std::vector<Nanos> sums = sum_gaps(steps, kind);
    const auto largest = std::max_element(sums.begin(), sums.end());
    if (*largest == 0) return;
    const auto rank = static_cast<std::int32_t>(largest - sums.begin());
    const double share = static_cast<double>(*largest) / time_of_ranks;
    causes.add_compared({make_facts(rank, share)}, all, causes.replay({with_gaps(kind)}));
  };
  add_kind(GapKind::kLaunch, [](std::int32_t rank, double share) {
    return LateLaunches{rank, share};
  });
  add_kind(GapKind::kPause, [&](std::int32_t rank, double) { return describe_gaps(steps, rank); });
  add_kind(GapKind::kUnseenMessage, [](std::int32_t, double) { return UnseenMessages{}; });
}

}  // namespace

CauseReport find_causes(std::span<const ReplicatedStep> steps,
                        std::span<const std::vector<OuterActivity>> activities) {
  CauseReport report;
  // If messages leave some time after their op ended, only the waiting time keeps the replay as
  // long as the measured step. Without it, the replay says nothing about causes.
  const CoupledSteps coupled(steps, activities);
  const double as_it_was = mean_of(coupled.replay(Waiting::kKept, {}));
  CauseList causes(coupled);
  report.is_known = std::abs(causes.replayed() - as_it_was) <= kMaxDropped * as_it_was;
  report.replayed = std::llround(causes.replayed());
  if (!report.is_known) return report;
  const CauseEvidence evidence(steps);
  add_long_ops(causes, evidence);
  report.many_long_ops = find_many_long_ops(evidence);
  add_drift(causes, evidence);
  add_messages(causes);
  add_slow_workers(causes, evidence);
  add_workers_slow_at_times(causes, evidence);
  add_common_slow_steps(causes, evidence);
  add_unequal_work(causes, evidence);
  add_gaps(causes);
  add_variation(causes);
  report.saved_together = causes.find_saved_together();
  report.causes = std::move(causes).rank();
  return report;
}

std::vector<Cause> find_exposed_activities(const SlowdownReport& slowdown) {
  std::vector<Cause> causes;
  for (const ActivitySlowdown& activity : slowdown.by_activity) {
    if (!activity.communicates) continue;
    Cause cause{ExposedCollective{activity.name}};
    cause.saves = std::accumulate(activity.saves.begin(), activity.saves.end(), Nanos{0}) /
                  static_cast<Nanos>(activity.saves.size());
    cause.left = slowdown.replayed - cause.saves;
    cause.saves_p5 = quantile(activity.saves, 5);
    cause.saves_p95 = quantile(activity.saves, 95);
    if (cause.saves > 0) causes.push_back(std::move(cause));
  }
  return causes;
}

}  // namespace bubblescope::inline sim
